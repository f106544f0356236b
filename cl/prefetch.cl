// Prefetches: hints to the cache that memory will be used soon.
//
// PREFETCH_LINE(p)        prefetches the cache line of p; nothing where the compiler has no prefetch.
// PREFETCH_TO_WRITE(p)    prefetches a line that will be written: stores reach a cache in order, and each waits for its line.
// PREFETCH_TO_SECOND(p)   prefetches into a core's second-level cache alone: lines from far away would stall the first level.
// HAS_PREFETCH            defined where the compiler has a prefetch.
// PREFETCH_TO_SHARED(p)   prefetches into the cache that all work-groups share; the load in flight takes no register.
// The prefetch built-in is used by compilers known to accept it: others end the process, which no probe survives (quirk 23).
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
