// Equal values among lanes, and the order of local memory between them.
//
// MATCH_WIDTH consecutive work-items are lanes of one another; it is a power of two, at most 32, and divides the work-group size.
//
// lanes_fence():        writes to local memory by lanes before it are visible to the others after it.
// lanes_match(box, x):  which lanes call it with the same x: bit i for lane i; a lanes_fence too. box holds a uint for each
//                       work-item, and is used again only after another lanes_fence.
//
// The whole work-group has to call them: where the device has no instruction of its own they go through local memory, with barriers.
#ifndef MATCH_WIDTH
    #error "match.cl needs MATCH_WIDTH: how many work-items are lanes of one another"
#endif
#if defined(MATCH_BY_PTX)
    #define lanes_fence() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
    uint lanes_match(local uint *box, uint x)
    {
        uint same;
        lanes_fence();
        asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(same) : "r"(x));
        return same;
    }
#else
    #define lanes_fence() barrier(CLK_LOCAL_MEM_FENCE)
    uint lanes_match(local uint *box, uint x)
    {
        const uint me = get_local_id(0), first = me / MATCH_WIDTH * MATCH_WIDTH;
        box[me] = x;
        lanes_fence();
        uint same = 0;
        for (uint lane = 0; lane < MATCH_WIDTH; ++lane)
            same |= (uint)(box[first + lane] == x) << lane;
        return same;
    }
#endif
