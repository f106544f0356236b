// The update of y by the sum of a row.
//
// SCALED 1: y = alpha * sum + beta * y, and y is not read where beta is 0. SCALED 0: y = sum, and no kernel has alpha or beta.
// SCALE_PARAMETERS are the kernel's parameters alpha and beta; SCALE_ARGUMENTS are alpha and beta as arguments of a function.
#ifndef SCALED
    #error "update.cl needs SCALED: 1 if there are alpha and beta, else 0"
#endif
#ifndef T_IS_COMPLEX
    #error "update.cl needs T_IS_COMPLEX: 1 if T is complex, else 0"
#endif
#if SCALED
    #define SCALE_PARAMETERS const T alpha, const T beta,
    #define SCALE_ARGUMENTS alpha, beta,
    bool is_zero(T v)
    {
        #if T_IS_COMPLEX
            return v.x == 0 && v.y == 0;
        #else
            return v == 0;
        #endif
    }
    void update(const T alpha, const T beta, global T *y, T sum)
    {
        const T scaled = MULTIPLY(alpha, sum);
        *y = is_zero(beta) ? scaled : ADD(scaled, MULTIPLY(beta, *y));
    }
    // `update_more` adds the sum of the rest of a row to the entry of y to which `update` has written the first piece's sum.
    void update_more(const T alpha, const T beta, global T *y, T sum)
    {
        *y = ADD(*y, MULTIPLY(alpha, sum));
    }
#else
    #define SCALE_PARAMETERS
    #define SCALE_ARGUMENTS
    void update(global T *y, T sum) { *y = sum; }
    void update_more(global T *y, T sum) { *y = ADD(*y, sum); }
#endif
