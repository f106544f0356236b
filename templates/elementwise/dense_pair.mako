<%doc>
Apply an operator to each value of a C-contiguous matrix, and to the value at the same place of a dense matrix of any strides.

Index space   work-items that stride over the values, or take adjacent ones: `spread` says which
Inputs        a: C-contiguous; b, from begin on: row_step and column_step count values, and may be negative or 0
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong n_columns,
    const long begin, const long row_step, const long column_step,
    global const T *restrict a, global const A_VALUE *restrict b, global C_VALUE *restrict results)
{
    const ulong first = get_global_id(0) * stride, end = min(n, first + span);
    for (ulong i = first; i < end; i += step) {
        const ulong row = i / n_columns, column = i - row * n_columns;
        results[i] = operate(a[i], from_a(b[begin + (long)row * row_step + (long)column * column_step]));
    }
}
