// Hints that memory will be used soon.
//
// PREFETCH_LINE(p)        asks for the cache line of p; nothing where the compiler has no such thing.
// PREFETCH_TO_WRITE(p)    asks for it to be written to. Stores reach a cache in order: without, each waits for its line alone.
// PREFETCH_TO_SECOND(p)   asks for it in a core's second cache alone: for lines from so far away that the first one would wait for
//                         nothing else.
// HAS_PREFETCH            defined where these do something.
// PREFETCH_TO_SHARED(p)   asks for it in the cache that all work-groups share, which takes no register meanwhile.
// Compilers that are known to take it: others end the process over it, which no probe survives (quirk 23).
#if defined(__x86_64__) || defined(__aarch64__) || defined(__INTEL_CLANG_COMPILER)
    #define HAS_PREFETCH
    #define PREFETCH_LINE(p) __builtin_prefetch(p);
    #define PREFETCH_TO_WRITE(p) __builtin_prefetch(p, 1);
    #define PREFETCH_TO_SECOND(p) __builtin_prefetch(p, 0, 2);
#else
    #define PREFETCH_LINE(p)
    #define PREFETCH_TO_WRITE(p)
    #define PREFETCH_TO_SECOND(p)
#endif
#if defined(MATCH_BY_PTX)
    #define PREFETCH_TO_SHARED(p) asm volatile("prefetch.global.L2 [%0];" : : "l"(p));
#else
    #define PREFETCH_TO_SHARED(p)
#endif
