// Loads of vectors from the address of any element of a buffer.
//
// UNALIGNED(TYPE, N):             makes LOAD_UNALIGNED(TYPE, N, p) usable.
// LOAD_UNALIGNED(TYPE, N, p):     the N values from p on; vloadN is the portable way to load them.
//                                 Some CPU runtimes call a function for vloadN.
//                                 A vector type of lower alignment makes the load one instruction, where compilers take it.
#if defined(__clang__)
    #define UNALIGNED(TYPE, N) typedef TYPE##N TYPE##N##_unaligned __attribute__((aligned(sizeof(TYPE))));
    #define LOAD_UNALIGNED(TYPE, N, p) (*(global const TYPE##N##_unaligned *)(p))
#else
    #define UNALIGNED(TYPE, N)
    #define LOAD_UNALIGNED(TYPE, N, p) vload##N(0, p)
#endif
