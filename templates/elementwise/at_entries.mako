<%doc>
Apply an operator to the value of each entry of a matrix in coordinates, and to a dense matrix's value at the entry's place.

Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        rows, columns and values of n entries; dense, of any strides, from begin on: row_step and column_step count
              values, and may be negative, or 0 where one row or column serves all
Local memory  none
Result        rounded once
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    const long begin, const long row_step, const long column_step,
    global const I *restrict rows, global const I *restrict columns, global const A_VALUE *restrict values,
    global const B_VALUE *restrict dense, global C_VALUE *restrict results)
{
    const ulong first = get_global_id(0) * stride, end = min(n, first + span);
    for (ulong k = first; k < end; k += step)
        results[k] = operate(from_a(values[k]), from_b(dense[begin + rows[k] * row_step + columns[k] * column_step]));
}
