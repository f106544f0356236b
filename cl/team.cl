// Operations of a team: TEAM consecutive work-items (lanes) of a work-group, which make a row together.
// TEAM, the number of work-items of a team, divides the work-group size.
// TEAM is a power of two, and a team lies in one sub-group, unless teams synchronise by barriers or are whole work-groups.
//
// TEAM_ROW:                          declares lane, team, active (whether the team has a row), and row, the row of C.
//                                    TEAM_ROW also declares begin and length, of the row of A.
// team_sync():                       makes a lane's writes to local memory before the call visible to the team's lanes after it.
// team_scan(box, x):                 the sum of x over the lower lanes of the team; box holds a uint for each lane of the team.
// team_offsets(offsets, n, box):     scans n counts: offsets[i] becomes the sum of the first i counts, for i from 0 to n.
// team_find(offsets, low, high, i):  the last k in low to high - 1 with offsets[k] <= i; k = low has it. A lane calls it alone.
//
// PLACE is an unsigned type that holds every offset of team_offsets.
// With TEAM_SYNC_BY_BARRIER the whole work-group has to call the functions of a team, but for team_find.
// Loops that call functions of a team with barriers have a trip count that the compiler knows (quirk 4).
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
        // The mask has a bit for each lane of the team, of the sub-group's 32 lanes: lanes of other teams need not synchronise.
        const uint mask = (TEAM < 32 ? (1u << TEAM % 32) - 1 : UINT_MAX) << get_local_id(0) % 32 / TEAM * TEAM;
        asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory");
    }
#elif defined(TEAM_SYNC_BY_WAVE)
    void team_sync(void)
    {
        // Lanes of a wave (sub-group) run in step: only the compiler has to keep the order of accesses to local memory.
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
