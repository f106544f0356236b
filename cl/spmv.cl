// Common to all SpMV kernels: the first parameters, and the update of y by the sum of a row.
//
// SPMV_OPERANDS are the first parameters, in this order, of every kernel of an SpMV plan, so that the plan sets them alike.
// The vector x begins x_offset entries into its buffer, and y begins y_offset entries into its buffer.
#include "update.cl"

#define SPMV_OPERANDS \
    global const A_VALUE *restrict data, global const X_VALUE *restrict x_base, const ulong x_offset, \
    global T *restrict y_base, const ulong y_offset, SCALE_PARAMETERS
