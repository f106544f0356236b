// Exchange of values of 64 bits between lanes (work-items of one sub-group).
//
// lanes_xor_u64(x, m): as lanes_xor_u32(x, m) of lanes.cl.
#include "lanes.cl"

#if LANE_WIDTH > 1
ulong lanes_xor_u64(ulong x, uint m)
{
    uint2 words = as_uint2(x);
    words.x = lanes_xor_u32(words.x, m);
    words.y = lanes_xor_u32(words.y, m);
    return as_ulong(words);
}
#endif
