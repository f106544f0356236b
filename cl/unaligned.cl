// Loads of vectors from the address of any element of a buffer.
//
// UNALIGNED(TYPE, N):             declares the vector type of N values, at any address, that LOAD_UNALIGNED(TYPE, N, p) needs.
// LOAD_UNALIGNED(TYPE, N, p):     the N values from p on; vloadN is the portable way to load them.
//                                 LOAD_UNALIGNED is one instruction where a compiler takes vector types of lower alignment,
//                                 whereas vloadN is a call of a function with some CPU runtimes.
#if defined(__clang__)
    #define UNALIGNED(TYPE, N) typedef TYPE##N TYPE##N##_unaligned __attribute__((aligned(sizeof(TYPE))));
    #define LOAD_UNALIGNED(TYPE, N, p) (*(global const TYPE##N##_unaligned *)(p))
#else
    #define UNALIGNED(TYPE, N)
    #define LOAD_UNALIGNED(TYPE, N, p) vload##N(0, p)
#endif
