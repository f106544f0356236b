// The minimum of values of type M (of 32 or 64 bits) over MIN_LANES consecutive lanes, a power of two from 2 to LANE_WIDTH.
//
// lanes_min(x):       the smallest x of each MIN_LANES consecutive lanes, in every one of these lanes.
// sub_group_min(x):   the smallest x of all LANE_WIDTH lanes, where each x is a result of lanes_min.
// Every lane of the sub-group has to call lanes_min and sub_group_min.
#ifndef M
    #error "lanes_min.cl needs M: the type of the values"
#endif
#ifndef MIN_LANES
    #error "lanes_min.cl needs MIN_LANES: how many lanes they are of"
#endif
#include "lanes_u64.cl"

M min_with(M x, uint m)
{
    return min(x, sizeof(M) == 8 ? (M)lanes_xor_u64(x, m) : (M)lanes_xor_u32((uint)x, m));
}

M lanes_min(M x)
{
    for (uint m = MIN_LANES / 2; m > 0; m /= 2)
        x = min_with(x, m);
    return x;
}

M sub_group_min(M x)
{
    for (uint m = MIN_LANES; m < LANE_WIDTH; m *= 2)
        x = min_with(x, m);
    return x;
}
