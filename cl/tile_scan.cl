// Sums of values of type T over a work-group, and over a tile of entries in local memory; ADD is T's addition, ZERO its identity.
//
// group_before(box, x)      the ADD of x over the work-items before this one; box holds a T for each work-item.
// tile_scan(tile, heads, box, head_box, carry): each entry of a tile becomes the ADD of carry and the tile's entries before it.
//                           A tile, WORK_GROUP * ITEMS entries, is in local memory.
//                           Where INCLUSIVE is 1, the sum of an entry includes the entry itself.
//                           Where SEGMENTED is 1, sums begin anew at each entry whose byte in heads is not 0.
//                           Where SEGMENTED is 1, head_box holds a uint for each work-item; else heads and head_box may be 0.
//
// group_before and tile_scan have barriers, so the whole work-group has to call them; tile_scan begins and ends with a barrier.
// group_before and tile_scan add the same values always in the same order.
// Loops that hold a barrier have a trip count that the compiler knows (quirk 4).
// A sum and the flag whether a segment begins in it are two variables, as a struct of both would have unwritten padding.
#ifndef WORK_GROUP
    #error "tile_scan.cl needs WORK_GROUP: the work-group size"
#endif
#if defined(ITEMS) && !defined(INCLUSIVE)
    #error "tile_scan.cl needs INCLUSIVE with ITEMS: 1 if an entry's sum has the entry itself, else 0"
#endif
#ifndef SEGMENTED
    #error "tile_scan.cl needs SEGMENTED: 1 if sums begin anew at heads, else 0"
#endif
#include "lanes_xor.cl"

// The sum of two adjacent pieces of entries; if `heads` says that a segment begins in the second piece, the sum of that alone.
T add_pieces(const T first, const T second, const uint heads)
{
    return SEGMENTED && heads ? second : ADD(first, second);
}

// The sum of the entries of the work-items before this one; *heads_before says whether a segment begins in these entries.
T group_scan_pieces(local T *box, local uint *head_box, const T mine, const uint heads, uint *heads_before)
{
    const uint me = get_local_id(0);
    T before = ZERO;
    uint any_before = 0;
#if LANE_WIDTH > 1 && WORK_GROUP % LANE_WIDTH == 0
    T total = mine;
    uint any = heads;
    for (uint step = 1; step < LANE_WIDTH; step *= 2) {
        const T other = lanes_xor(total, step);
        const uint any_other = SEGMENTED ? lanes_xor_u32(any, step) : 0;
        if (me & step) {
            before = add_pieces(other, before, any_before);
            any_before |= any_other;
            total = add_pieces(other, total, any);
        } else
            total = add_pieces(total, other, any_other);
        any |= any_other;
    }
    if (me % LANE_WIDTH == 0) {
        box[me / LANE_WIDTH] = total;
        if (SEGMENTED)
            head_box[me / LANE_WIDTH] = any;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    T earlier = ZERO;
    uint any_earlier = 0;
    for (uint i = 0; i < me / LANE_WIDTH; ++i) {
        const uint heads_i = SEGMENTED ? head_box[i] : 0;
        earlier = add_pieces(earlier, box[i], heads_i);
        any_earlier |= heads_i;
    }
    before = add_pieces(earlier, before, any_before);
    any_before |= any_earlier;
#else
    box[me] = mine;
    if (SEGMENTED)
        head_box[me] = heads;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < WORK_GROUP; step *= 2) {
        const T earlier = me >= step ? box[me - step] : ZERO;
        const uint any_earlier = SEGMENTED && me >= step ? head_box[me - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        box[me] = add_pieces(earlier, box[me], SEGMENTED ? head_box[me] : 0);
        if (SEGMENTED)
            head_box[me] |= any_earlier;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me > 0) {
        before = box[me - 1];
        any_before = SEGMENTED ? head_box[me - 1] : 0;
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    *heads_before = any_before;
    return before;
}

T group_before(local T *box, const T mine)
{
    uint none;
    return group_scan_pieces(box, 0, mine, 0, &none);
}

#if defined(ITEMS)
void tile_scan(local T *tile, local const uchar *heads, local T *box, local uint *head_box, const T carry)
{
    const uint first = get_local_id(0) * ITEMS;
    barrier(CLK_LOCAL_MEM_FENCE);
    T sum = ZERO;
    uint any = 0;
    for (uint i = first; i < first + ITEMS; ++i) {
        const uint head = SEGMENTED ? heads[i] : 0;
        sum = add_pieces(sum, tile[i], head);
        any |= head;
    }
    uint any_before;
    const T before = group_scan_pieces(box, head_box, sum, any, &any_before);
    sum = add_pieces(carry, before, any_before);
    for (uint i = first; i < first + ITEMS; ++i) {
        const uint head = SEGMENTED ? heads[i] : 0;
        const T through = add_pieces(sum, tile[i], head);
        tile[i] = INCLUSIVE ? through : head ? ZERO : sum;
        sum = through;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif
