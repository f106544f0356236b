// Exchange and reduction of values of type T between lanes (consecutive work-items of one work-group).
//
// lanes_xor(x, m):          the x of the lane whose number differs from this lane's in bit m, as in lanes_xor.cl.
// box_xor(box, x, m):       as lanes_xor(x, m), through local memory: m is any power of two below the work-group size.
//                           box_xor has barriers, so the whole work-group has to call it; box holds a T for each work-item.
// lanes_reduce(box, x, n):  the ADD of x over each n consecutive lanes, in every one of these lanes, always in the same order.
//                           The n of lanes_reduce is a power of two, at most MAX_LANES, which divides the work-group size.
//                           The whole work-group has to call lanes_reduce, with one n.
// lanes_within(x):          the ADD of x over each LANE_WIDTH (at most MAX_LANES) consecutive lanes, in every one of these lanes.
//                           lanes_within has no barrier, and exists only where lanes exchange values without local memory.
//
// Loops that hold a barrier have a trip count that the compiler knows (quirk 4).
#ifndef MAX_LANES
    #error "lanes_t.cl needs MAX_LANES: the most lanes that lanes_reduce is called for"
#endif
#include "lanes_xor.cl"

T box_xor(local T *box, T x, uint m)
{
    const uint me = get_local_id(0);
    box[me] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    const T y = box[me ^ m];
    barrier(CLK_LOCAL_MEM_FENCE);
    return y;
}

#if LANE_WIDTH > 1
T lanes_within(T x)
{
    for (uint step = min(MAX_LANES, LANE_WIDTH) / 2; step > 0; step /= 2)
        x = ADD(x, lanes_xor(x, step));
    return x;
}
#endif

T lanes_reduce(local T *box, T x, const uint n)
{
    for (uint step = MAX_LANES / 2; step >= LANE_WIDTH; step /= 2) {
        const T other = box_xor(box, x, step);
        if (step < n)
            x = ADD(x, other);
    }
#if LANE_WIDTH > 1
    for (uint step = min(MAX_LANES, LANE_WIDTH) / 2; step > 0; step /= 2) {
        const T other = lanes_xor(x, step);
        if (step < n)
            x = ADD(x, other);
    }
#endif
    return x;
}
