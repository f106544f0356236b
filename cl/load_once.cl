// Streaming loads of data that a kernel reads once: they bypass the first-level cache, which keeps the vector x of a product.
// Devices without instructions for streaming loads have plain loads. The loaded memory must not be written while the kernel runs.
#if defined(LOAD_ONCE_BY_PTX)
    uint load_once_32(global const uint *p)
    {
        uint x;
        asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(x) : "l"(p));
        return x;
    }
    ulong load_once_64(global const ulong *p)
    {
        ulong x;
        asm volatile("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(x) : "l"(p));
        return x;
    }
    ulong2 load_once_128(global const ulong2 *p)
    {
        ulong2 x;
        asm volatile("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];" : "=l"(x.x), "=l"(x.y) : "l"(p));
        return x;
    }
#else
    #define load_once_32(p) (*(p))
    #define load_once_64(p) (*(p))
    #define load_once_128(p) (*(p))
#endif
