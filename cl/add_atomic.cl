// add_atomic(sum, x): *sum = ADD(*sum, x) for a T of 4 or 8 bytes in local memory, by compare and exchange: in any order.
#ifndef T_BYTES
    #error "add_atomic.cl needs T_BYTES: the bytes of a T"
#endif
#if T_BYTES == 8
    #pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

void add_atomic(local T *sum, const T x)
{
    // The first compare-and-exchange expects that *sum is still ZERO, with which each sum begins.
#if T_BYTES == 4
    uint current = T_BITS(ZERO), expected;
    do {
        expected = current;
        current = atomic_cmpxchg((volatile local uint *)sum, expected, T_BITS(ADD(T_FROM_BITS(expected), x)));
    } while (current != expected);
#else
    ulong current = as_ulong(T_BITS(ZERO)), expected;
    do {
        expected = current;
        current = atom_cmpxchg((volatile local ulong *)sum, expected, as_ulong(T_BITS(ADD(T_FROM_BITS(as_uint2(expected)), x))));
    } while (current != expected);
#endif
}
