// Common to all SpMV kernels: the first parameters, and the update of y by the sum of a row.
//
// The operands are the first parameters, in this order, of every kernel of a plan, so that the plan sets them alike. x and y begin
// x_offset and y_offset entries into their buffers.
#include "update.cl"

#define SPMV_OPERANDS \
    global const A_VALUE *restrict data, global const X_VALUE *restrict x_base, const ulong x_offset, \
    global T *restrict y_base, const ulong y_offset, SCALE_PARAMETERS
