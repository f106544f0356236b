// Vectors at the address of any of their elements, and a hint that memory will be read soon.
//
// UNALIGNED(TYPE, N):             makes LOAD_UNALIGNED(TYPE, N, p) usable.
// LOAD_UNALIGNED(TYPE, N, p):     the N values from p on. vloadN is the portable way; where the compiler is known to take a vector
//                                 type of lower alignment, that is one instruction where some CPU runtimes call a function.
// PREFETCH_LINE(p)                asks for the cache line of p; nothing where the compiler has no such thing (quirk 23).
#if defined(__clang__)
    #define UNALIGNED(TYPE, N) typedef TYPE##N TYPE##N##_unaligned __attribute__((aligned(sizeof(TYPE))));
    #define LOAD_UNALIGNED(TYPE, N, p) (*(global const TYPE##N##_unaligned *)(p))
#else
    #define UNALIGNED(TYPE, N)
    #define LOAD_UNALIGNED(TYPE, N, p) vload##N(0, p)
#endif
// Compilers that are known to take it: others end the process over it, which no probe survives (quirk 23).
#if defined(__x86_64__) || defined(__aarch64__) || defined(__INTEL_CLANG_COMPILER)
    #define PREFETCH_LINE(p) __builtin_prefetch(p);
#else
    #define PREFETCH_LINE(p)
#endif
