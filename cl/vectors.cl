// Silences a warning of clang about functions that take or return vectors of 32 bytes.
//
// clang warns that a function of vectors of 32 bytes is called in another way if compiled for a processor of wider registers.
// Built-ins are compiled for the processor of the kernels, so the warning -Wpsabi would only reach the user's terminal (quirk 3).
#if defined(__clang__) && defined(__x86_64__) && !defined(__AVX__)
    #pragma clang diagnostic ignored "-Wpsabi"
#endif
