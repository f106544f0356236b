<%doc>
Apply an operator to a sparse row, repeated for each row of a dense matrix, or to a sparse column, repeated for each of its
columns: the result has every entry of the sparse row or column as many times.

Index space   work-items that stride over the results, or take adjacent ones: `spread` says which
Inputs        columns of the n_entries entries of a row, or rows of those of a column, and values; copies: how many times;
              dense, of any strides, from begin on: row_step and column_step count values, and may be negative, or 0 where one
              row or column serves all
Output        rows, columns and values of the results: of a row copy by copy, of a column entry by entry
Local memory  none
Result        rounded once
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong n_entries, const ulong copies,
    const long begin, const long row_step, const long column_step,
    global const I *restrict places, global const A_VALUE *restrict values, global const B_VALUE *restrict dense,
    global J *restrict rows, global J *restrict columns, global C_VALUE *restrict results)
{
    const ulong first = get_global_id(0) * stride, end = min(n, first + span);
    for (ulong i = first; i < end; i += step) {
% if of_row:
        const ulong copy = i / n_entries, k = i - copy * n_entries;
        const long row = (long)copy, column = places[k];
% else:
        const ulong k = i / copies, copy = i - k * copies;
        const long row = places[k], column = (long)copy;
% endif
        rows[i] = (J)row;
        columns[i] = (J)column;
        results[i] = operate(from_a(values[k]), from_b(dense[begin + row * row_step + column * column_step]));
    }
}
