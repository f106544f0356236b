<%doc>
y[row] = A[row] @ x for the rows that a mask lets through; other rows of y stay as they are. `lanes` consecutive work-items take a
row.

Source        own; GraphBLAS, masked matrix-vector products
Index space   `lanes` work-items to a row
Inputs        columns in any order, duplicates allowed; rows may be empty; mask: a value for each row; takes_nonzero: whether
              rows with a nonzero value are taken, or the others
Local memory  none; lanes of a row exchange within a sub-group
Result        deterministic: a row is always summed in the same order
</%doc>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const A_VALUE *restrict data, global const X_VALUE *restrict x_base, const ulong x_offset,
    global T *restrict y_base, const ulong y_offset,
    global const uchar *restrict mask, const uint takes_nonzero,
    const I n_rows, global const I *restrict indptr, global const I *restrict indices)
{
    global const X_VALUE *restrict x = x_base + x_offset;
    global T *restrict y = y_base + y_offset;
    const ulong slot = get_global_id(0) / ${lanes};
    const bool active = slot < (ulong)n_rows && (mask[slot] != 0) == (takes_nonzero != 0);
    const uint lane = get_local_id(0) % ${lanes};
    const I row = active ? (I)slot : 0, end = active ? indptr[row + 1] : 0;
    T sum = ZERO;
    for (I k = active ? indptr[row] : 0; k < end; k += ${lanes})
        if (k + (I)lane < end)
            sum = ADD(sum, MULTIPLY(LOAD_A(data + k + lane), LOAD_X(x + LOAD_INDEX(indices + k + lane))));
    // All lanes of a row take part in lanes_reduce, also lanes of rows that the mask leaves out.
    local T *box = 0;
    sum = lanes_reduce(box, sum, ${lanes});
    if (active && lane == 0)
        y[row] = sum;
}
