<%doc>
Y = alpha * A @ X + beta * Y for a dense X of any number of columns and any strides: a work-item to a row of A and to C adjacent
columns, whose sums it keeps in registers.

Source        the row-wise product of CSR with a dense matrix; columns in registers as in Yang, Buluc and Owens, Euro-Par 2018
Index space   n_rows * ceil(n_columns / C) work-items, the blocks of columns of a row beside each other
Inputs        x begins x_offset entries into its buffer, its entry (i, j) is i * x_row + j * x_column further; the same for y;
              A's columns in any order, duplicates allowed; rows may be empty
Local memory  none
Result        deterministic: a row is summed in the order that it is stored
</%doc>
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    const long x_row, const long x_column, const long y_row, const long y_column,
    const I n_rows, const long n_columns, global const I *restrict indptr, global const I *restrict indices)
{
    const long blocks = (n_columns + ${columns - 1}) / ${columns};
    const long row = (long)get_global_id(0) / blocks;
    if (row >= n_rows)
        return;
    const long column = ((long)get_global_id(0) - row * blocks) * ${columns};
    // A block at the edge computes its missing columns from the last one and doesn't write them.
% for c in range(columns):
    const long column_${c} = ${"column" if c == 0 else f"min(column + {c}, n_columns - 1)"};
    T sum_${c} = ZERO;
% endfor
    global const X_VALUE *restrict x = x_base + x_offset;
    const I end = indptr[row + 1];
    for (I k = indptr[row]; k < end; ++k) {
        const T a = from_a(data[k]);
        global const X_VALUE *restrict x_of_k = x + (long)indices[k] * x_row;
% for c in range(columns):
        sum_${c} = ADD(sum_${c}, MULTIPLY(a, LOAD_X(x_of_k + column_${c} * x_column)));
% endfor
    }
    global T *restrict y = y_base + y_offset + row * y_row;
% for c in range(columns):
    if (column + ${c} < n_columns)
        update(SCALE_ARGUMENTS y + column_${c} * y_column, sum_${c});
% endfor
}
