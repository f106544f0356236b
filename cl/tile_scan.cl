// Sums of values of type T over a work-group and over a tile in local memory; ADD is T's addition and ZERO its identity.
//
// group_before(box, x):          the ADD of x over the work-items before this one; box holds a T for each.
// tile_scan(tile, box, carry):   each entry of a tile of WORK_GROUP * ITEMS becomes the ADD of carry and all entries before it, and
//                                of itself where INCLUSIVE is 1.
//
// They have barriers, so the whole work-group has to call them; tile_scan begins and ends with one. Always in the same order.
// Loops that hold a barrier have a trip count that the compiler knows: a CPU runtime was seen to get others wrong.
#include "lanes_xor.cl"

T group_before(local T *box, const T mine)
{
    const uint me = get_local_id(0);
#if LANE_WIDTH > 1 && WORK_GROUP % LANE_WIDTH == 0
    T before = ZERO, total = mine;
    for (uint step = 1; step < LANE_WIDTH; step *= 2) {
        const T other = lanes_xor(total, step);
        if (me & step)
            before = ADD(other, before);
        total = ADD(total, other);
    }
    if (me % LANE_WIDTH == 0)
        box[me / LANE_WIDTH] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    T earlier = ZERO;
    for (uint i = 0; i < me / LANE_WIDTH; ++i)
        earlier = ADD(earlier, box[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return ADD(earlier, before);
#else
    box[me] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < WORK_GROUP; step *= 2) {
        const T y = me >= step ? box[me - step] : ZERO;
        barrier(CLK_LOCAL_MEM_FENCE);
        box[me] = ADD(y, box[me]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const T before = me > 0 ? box[me - 1] : ZERO;
    barrier(CLK_LOCAL_MEM_FENCE);
    return before;
#endif
}

#if defined(ITEMS)
void tile_scan(local T *tile, local T *box, const T carry)
{
    local T *mine = tile + get_local_id(0) * ITEMS;
    barrier(CLK_LOCAL_MEM_FENCE);
    T sum = ZERO;
    for (uint i = 0; i < ITEMS; ++i)
        sum = ADD(sum, mine[i]);
    sum = ADD(carry, group_before(box, sum));
    for (uint i = 0; i < ITEMS; ++i) {
        const T next = ADD(sum, mine[i]);
        mine[i] = INCLUSIVE ? next : sum;
        sum = next;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif
