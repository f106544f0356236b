// Elements of sorts and merges: keys of type K and, where VALUES is 1, values of type V that move with the keys.
//
// ELEMENTS(x), CONST_ELEMENTS(x):  parameters of a function: the arrays x_keys and x_values.
// ARRAYS(x):                       the arrays x_keys and x_values as arguments of a call.
// MOVE(x, i, y, j):                copies element i of x, its key and value, to element j of y.
#ifndef VALUES
    #error "elements.cl needs VALUES: 1 if values move with keys, else 0"
#endif
#if VALUES
    #define ELEMENTS(x) global K *x##_keys, global V *x##_values
    #define CONST_ELEMENTS(x) global const K *x##_keys, global const V *x##_values
    #define ARRAYS(x) x##_keys, x##_values
    #define MOVE(x, i, y, j) { x##_keys[i] = y##_keys[j]; x##_values[i] = y##_values[j]; }
#else
    #define ELEMENTS(x) global K *x##_keys
    #define CONST_ELEMENTS(x) global const K *x##_keys
    #define ARRAYS(x) x##_keys
    #define MOVE(x, i, y, j) { x##_keys[i] = y##_keys[j]; }
#endif
