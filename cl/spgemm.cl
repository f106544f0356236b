// The common parameters of kernels that make rows of C = A @ B.
//
// SPGEMM_PARAMETERS are the first parameters of a kernel that makes rows of C.
// With SYMBOLIC, the kernel writes the number of distinct columns of a row of C to counts[row].
// Without SYMBOLIC, c_data takes the values of a row of C from c_indptr[row] on, and c_indices the columns, ascending.
// With VALUES_ONLY, the columns of C are in c_indices already, and are read.
// With UPPER_BOUND, a row of C has room for all products from c_indptr[row] on, and counts[row] takes its number of entries.
// Rows of B are sorted and have no duplicates; rows of A may be in any order.
//
// COLUMN is an unsigned type that holds every column of B and NO_COLUMN, which is no column and greater than all columns.
#ifndef SYMBOLIC
    #error "spgemm.cl needs SYMBOLIC: 1 in the symbolic phase, else 0"
#endif
#ifndef VALUES_ONLY
    #error "spgemm.cl needs VALUES_ONLY: 1 if columns are there, else 0"
#endif
#ifndef UPPER_BOUND
    #error "spgemm.cl needs UPPER_BOUND: 1 if rows have room for all products, else 0"
#endif
#include "spgemm_rows.cl"

#define SPGEMM_STRUCTURE \
    global const I *restrict a_indptr, global const I *restrict a_indices, \
    global const I *restrict b_indptr, global const I *restrict b_indices,
#if SYMBOLIC
    #define SPGEMM_PARAMETERS SPGEMM_ROWS SPGEMM_STRUCTURE global uint *restrict counts
#else
    #if VALUES_ONLY
        #define C_INDICES global const C_INDEX *restrict c_indices
    #else
        #define C_INDICES global C_INDEX *restrict c_indices
    #endif
    #if UPPER_BOUND
        #define COUNTS , global uint *restrict counts
    #else
        #define COUNTS
    #endif
    #define SPGEMM_PARAMETERS \
        SPGEMM_ROWS SPGEMM_STRUCTURE \
        global const A_VALUE *restrict a_data, global const X_VALUE *restrict b_data, \
        global const C_INDEX *restrict c_indptr, C_INDICES, global T *restrict c_data COUNTS
#endif
