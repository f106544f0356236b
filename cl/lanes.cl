// Exchange between lanes: consecutive work-items of one work-group.
//
// lanes_xor_u32(x, m): the x of the lane whose number differs from this lane's in bit m; m is a power of two below LANE_WIDTH.
//                      Every lane of the sub-group has to call lanes_xor_u32.
//
// The capabilities of the device choose how lanes_xor_u32 is compiled; kernels do not depend on the choice.
// LANE_WIDTH is the number of lanes that were verified to exchange values.
// LANE_WIDTH is 1 if values go through local memory alone: then there is no lanes_xor_u32, and kernels use box_xor.
#ifndef LANE_WIDTH
    #error "lanes.cl needs LANE_WIDTH: how many lanes exchange values, 1 for none"
#endif
#if defined(LANES_BY_SUB_GROUP)
    #define lanes_xor_u32(x, m) sub_group_shuffle_xor((uint)(x), (uint)(m))
#elif defined(LANES_BY_BPERMUTE)
    uint lanes_xor_u32(uint x, uint m)
    {
        // The instruction ds_bpermute takes the address of a lane: four times the lane's number.
        return (uint)__builtin_amdgcn_ds_bpermute((int)(((uint)get_local_id(0) ^ m) << 2), (int)x);
    }
#elif defined(LANES_BY_PTX)
    uint lanes_xor_u32(uint x, uint m)
    {
        uint y;
        asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(m));
        return y;
    }
#endif
