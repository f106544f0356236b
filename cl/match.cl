// The search for equal values among lanes, and the order of lanes' accesses to local memory.
//
// A team is MATCH_WIDTH consecutive work-items, its lanes; MATCH_WIDTH, at most 32, is a power of two and divides WORK_GROUP.
//
// lanes_fence():        a lane's writes to local memory before the fence are visible to all lanes of the team after the fence.
// lanes_match(box, x):  the set of the team's lanes with the same x, of MATCH_BITS bits, as bits: bit i for lane i.
//                       lanes_match includes a lanes_fence; its box holds a uint for each work-item.
//                       The box of lanes_match is used again only after another lanes_fence.
// lanes_any(x):         whether x is true in any lane of the team; only with MATCH_BY_PTX, whose compiler sees that lanes agree.
// computed_now(x), computed_now_64(x): forces the compiler to compute x, of 32 or 64 bits, here.
//                       Without computed_now compilers compute x late and keep its operands in registers, which run out.
//
// The whole work-group has to call the functions of this file: without instructions for them, they use local memory and barriers.
#if !defined(MATCH_WIDTH) || !defined(MATCH_BITS)
    #error "match.cl needs MATCH_WIDTH, how many work-items are lanes of one another, and MATCH_BITS, how many bits values have"
#endif
#if defined(MATCH_BY_PTX)
    #define lanes_fence() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
    #define computed_now(x) { uint now; asm volatile("mov.u32 %0, %1;" : "=r"(now) : "r"(x)); x = now; }
    #define computed_now_64(x) { ulong now; asm volatile("mov.u64 %0, %1;" : "=l"(now) : "l"(x)); x = now; }
    bool lanes_any(const bool x)
    {
        uint votes;
        asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff;}" : "=r"(votes) : "r"((uint)x));
        return votes != 0;
    }
    uint lanes_match(local uint *box, uint x)
    {
        // Lanes vote on each bit of x, as the instruction match takes longer the more distinct values of x the lanes have.
        uint same = 0xffffffff;
        lanes_fence();
        for (uint bit = 0; bit < MATCH_BITS; ++bit) {
            const uint mine = x >> bit & 1;
            uint votes;
            asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff;}" : "=r"(votes) : "r"(mine));
            same &= votes ^ (mine - 1);
        }
        return same;
    }
#else
    #define lanes_fence() barrier(CLK_LOCAL_MEM_FENCE)
    #define computed_now(x)
    #define computed_now_64(x)
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
