// Sums of values of type T over a work-group, and over a tile of entries in local memory; ADD is T's addition, ZERO its identity.
//
// SUM              a sum, and where SEGMENTED is 1 also whether a segment begins in what was summed: what came before does not count
//                  where one does.
// NOTHING          the SUM of no entries.
// sum_of(x, head)  the SUM of one entry, at which a segment begins where head is not 0.
// joined(a, b)     the SUM of two adjacent pieces, a before b.
// group_before(box, mine)       the joined SUMs of the work-items before this one; box holds a SUM for each.
// tile_scan(tile, box, carry)   each entry of a tile of WORK_GROUP * ITEMS becomes the sum of those before it, of carry, which comes
//                               before all, and where INCLUSIVE is 1 of itself. With SEGMENTED 1 there is, after tile, heads: a
//                               byte for each entry, not 0 where a segment begins.
//
// The last two have barriers, so the whole work-group has to call them; tile_scan begins and ends with one. The order of additions is
// always the same. Loops that hold a barrier have a trip count that the compiler knows: a CPU runtime was seen to get others wrong.
#include "lanes_xor.cl"

#if SEGMENTED
    typedef struct {
        T total;
        uint heads;
    } SUM;
    SUM sum_of(const T x, const uint head)
    {
        SUM sum = {x, head};
        return sum;
    }
    #define NOTHING sum_of(ZERO, 0)
    #define TOTAL(sum) ((sum).total)
    SUM joined(const SUM a, const SUM b) { return sum_of(b.heads ? b.total : ADD(a.total, b.total), a.heads | b.heads); }
    #if LANE_WIDTH > 1
        SUM lanes_xor_sum(const SUM a, const uint m) { return sum_of(lanes_xor(a.total, m), lanes_xor_u32(a.heads, m)); }
    #endif
#else
    #define SUM T
    #define sum_of(x, head) (x)
    #define NOTHING ZERO
    #define TOTAL(sum) (sum)
    #define joined(a, b) ADD(a, b)
    #define lanes_xor_sum(a, m) lanes_xor(a, m)
#endif

SUM group_before(local SUM *box, const SUM mine)
{
    const uint me = get_local_id(0);
#if LANE_WIDTH > 1 && WORK_GROUP % LANE_WIDTH == 0
    SUM before = NOTHING, all = mine;
    for (uint step = 1; step < LANE_WIDTH; step *= 2) {
        const SUM other = lanes_xor_sum(all, step);
        if (me & step) {
            before = joined(other, before);
            all = joined(other, all);
        } else
            all = joined(all, other);
    }
    if (me % LANE_WIDTH == 0)
        box[me / LANE_WIDTH] = all;
    barrier(CLK_LOCAL_MEM_FENCE);
    SUM earlier = NOTHING;
    for (uint i = 0; i < me / LANE_WIDTH; ++i)
        earlier = joined(earlier, box[i]);
    before = joined(earlier, before);
#else
    box[me] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < WORK_GROUP; step *= 2) {
        const SUM earlier = me >= step ? box[me - step] : NOTHING;
        barrier(CLK_LOCAL_MEM_FENCE);
        box[me] = joined(earlier, box[me]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const SUM before = me > 0 ? box[me - 1] : NOTHING;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    return before;
}

#if defined(ITEMS)
void tile_scan(
    local T *tile,
#if SEGMENTED
    local const uchar *heads,
#endif
    local SUM *box, const T carry)
{
    const uint first = get_local_id(0) * ITEMS;
    barrier(CLK_LOCAL_MEM_FENCE);
    SUM mine = NOTHING;
    for (uint i = first; i < first + ITEMS; ++i)
        mine = joined(mine, sum_of(tile[i], heads[i]));
    SUM before = joined(sum_of(carry, 0), group_before(box, mine));
    for (uint i = first; i < first + ITEMS; ++i) {
        const SUM through = joined(before, sum_of(tile[i], heads[i]));
    #if INCLUSIVE
        tile[i] = TOTAL(through);
    #elif SEGMENTED
        tile[i] = heads[i] ? ZERO : TOTAL(before);
    #else
        tile[i] = before;
    #endif
        before = through;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif
