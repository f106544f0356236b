// Operations of a team: TEAM consecutive work-items of a work-group, which make a row together. TEAM divides the
// work-group size; where it is no whole work-group and TEAM_SYNC_BY is not "barrier", it is a power of two within a sub-group.
//
// TEAM_ROW:                          declares lane, team, and the row of C that the team makes, if it is active; begin and length of
//                                    that row of A.
// team_sync():                       writes to local memory by lanes of the team before it are visible to the others after it.
// team_scan(box, x):                 the sum of x over the lanes before this one; box holds a uint for each lane of the team.
// team_offsets(offsets, n, box):     offsets[i] becomes the sum of the first i of n counts, offsets[n] that of all: n + 1 entries.
// team_find(offsets, low, high, i):  the last k in low to high - 1 with offsets[k] <= i, of which low is one. No lane needs others.
//
// PLACE is an unsigned type that holds every offset. With TEAM_SYNC_BY_BARRIER the whole work-group has to call all but
// team_find, and loops that hold them have a trip count that the compiler knows (quirk 4).
#ifndef TEAM
    #error "team.cl needs TEAM: work-items to a row"
#endif
#define TEAM_ROW \
    const uint lane = get_local_id(0) % TEAM, team = get_local_id(0) / TEAM; \
    const ulong number = (ulong)get_group_id(0) * (WORK_GROUP / TEAM) + team; \
    const bool active = number < n_rows; \
    const ulong row = active ? SPGEMM_ROW(number) : 0; \
    const I begin = active ? a_indptr[row] : 0; \
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;

#if TEAM == 1
    #define team_sync()
#elif defined(TEAM_SYNC_BY_PTX)
    void team_sync(void)
    {
        // The lanes of the team among the 32 of the sub-group: others may be elsewhere.
        const uint mask = (TEAM < 32 ? (1u << TEAM % 32) - 1 : UINT_MAX) << get_local_id(0) % 32 / TEAM * TEAM;
        asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory");
    }
#elif defined(TEAM_SYNC_BY_WAVE)
    void team_sync(void)
    {
        // Lanes run in step: only the compiler has to keep the order.
        mem_fence(CLK_LOCAL_MEM_FENCE);
        __builtin_amdgcn_wave_barrier();
        mem_fence(CLK_LOCAL_MEM_FENCE);
    }
#else
    #define team_sync() barrier(CLK_LOCAL_MEM_FENCE)
#endif

uint team_scan(local uint *box, const uint x)
{
    const uint lane = get_local_id(0) % TEAM;
    uint sum = x;
    for (uint step = 1; step < TEAM; step *= 2) {
        box[lane] = sum;
        team_sync();
        if (lane >= step)
            sum += box[lane - step];
        team_sync();
    }
    return sum - x;
}

void team_offsets(local PLACE *offsets, const uint n, local uint *box)
{
    const uint lane = get_local_id(0) % TEAM, part = (n + TEAM - 1) / TEAM;
    const uint begin = min(lane * part, n), end = min(begin + part, n);
    uint sum = 0;
    for (uint i = begin; i < end; ++i)
        sum += offsets[i];
    sum = team_scan(box, sum);
    for (uint i = begin; i < end; ++i) {
        const uint count = offsets[i];
        offsets[i] = (PLACE)sum;
        sum += count;
    }
    if (lane == TEAM - 1)
        offsets[n] = (PLACE)sum;
    team_sync();
}

uint team_find(local const PLACE *offsets, uint low, uint high, const uint i)
{
    while (high - low > 1) {
        const uint middle = (low + high) / 2;
        if (offsets[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}
