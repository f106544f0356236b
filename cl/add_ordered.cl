// Ordered addition of values of a team (TEAM work-items, its lanes) to sums in local memory, without atomics on values.
//
// add_ordered(sums, terms, slots, masks, active, slot, x): sums[slot] = ADD(sums[slot], x) for each active lane of the team.
// Lanes of the team with the same slot add in the order of the lanes.
// Scratch of add_ordered for each lane of the team: a T in terms, a ushort in slots, TEAM_WORDS zeros in masks.
// All lanes of the team have to call add_ordered, and the whole work-group where team_sync is a barrier.
//
// Lane l of the team adds all values for the slots congruent to l modulo TEAM.
// The mask of lane l has a bit for each lane of the team whose slot lane l adds for.
#include "team.cl"
#define TEAM_WORDS ((TEAM + 31) / 32)

void add_ordered(
    local T *sums, local T *terms, local ushort *slots, local uint *masks, const bool active, const uint slot, const T x)
{
#if TEAM == 1
    if (active)
        sums[slot] = ADD(sums[slot], x);
#else
    const uint lane = get_local_id(0) % TEAM;
    if (active) {
        terms[lane] = x;
        slots[lane] = (ushort)slot;
        atomic_or(masks + slot % TEAM * TEAM_WORDS + lane / 32, 1u << lane % 32);
    }
    team_sync();
    for (uint word = 0; word < TEAM_WORDS; ++word) {
        uint mask = masks[lane * TEAM_WORDS + word];
        if (mask) {
            masks[lane * TEAM_WORDS + word] = 0;
            for (; mask; mask &= mask - 1) {
                const uint other = word * 32 + 31 - clz(mask & -mask);
                sums[slots[other]] = ADD(sums[slots[other]], terms[other]);
            }
        }
    }
    team_sync();
#endif
}
