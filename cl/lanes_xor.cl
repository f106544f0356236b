// Exchange of values of type T (of T_BYTES bytes) between lanes (work-items of one sub-group).
//
// lanes_xor(x, m): the x of the lane whose number differs from this lane's in bit m; m is a power of two below LANE_WIDTH.
#ifndef T_BYTES
    #error "lanes_xor.cl needs T_BYTES: the bytes of a T"
#endif
#include "lanes.cl"

#if LANE_WIDTH > 1
T lanes_xor(T x, uint m)
{
    #if T_BYTES == 1
        return T_FROM_BITS((uchar)lanes_xor_u32((uint)T_BITS(x), m));
    #elif T_BYTES == 2
        return T_FROM_BITS((ushort)lanes_xor_u32((uint)T_BITS(x), m));
    #elif T_BYTES == 4
        return T_FROM_BITS(lanes_xor_u32(T_BITS(x), m));
    #elif T_BYTES == 8
        uint2 words = as_uint2(x);
        words.x = lanes_xor_u32(words.x, m);
        words.y = lanes_xor_u32(words.y, m);
        return T_FROM_BITS(words);
    #else
        uint4 words = as_uint4(x);
        words.x = lanes_xor_u32(words.x, m);
        words.y = lanes_xor_u32(words.y, m);
        words.z = lanes_xor_u32(words.z, m);
        words.w = lanes_xor_u32(words.w, m);
        return T_FROM_BITS(words);
    #endif
}
#endif
