<%doc>
The largest or smallest value of each row, stored or not, from the largest or smallest of the row's entries.

Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        indptr; extremes: the extreme value of the entries of each row, any value if it has none; n_columns: 0 if only
              entries count
Output        extremes: 0 for rows without entries; rows: the numbers from 0 on; bounds: 0 and n_rows; marks: 1 for values but 0
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong stride, const ulong step, const ulong span, const ulong n_columns,
    global const I *restrict indptr, global V *restrict extremes, global I *restrict rows, global I *restrict bounds,
    global uchar *restrict marks)
{
    const ulong begin = get_global_id(0) * stride, end = min(n_rows, begin + span);
    for (ulong row = begin; row < end; row += step) {
        const I length = indptr[row + 1] - indptr[row];
        rows[row] = (I)row;
        if (row == 0) {
            bounds[0] = 0;
            bounds[1] = (I)n_rows;
        }
        const V value = length == 0 ? (V)(0) : (ulong)length < n_columns ? extreme(extremes[row], (V)(0)) : extremes[row];
        extremes[row] = value;
        marks[row] = ${is_kept} ? 1 : 0;
    }
}
