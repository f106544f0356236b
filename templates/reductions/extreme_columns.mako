<%doc>
The columns of entries that have the extreme value of their row; the largest integer for other entries. `of_all`: the positions
of entries that have the extreme value of the matrix.

Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        values of n entries, their rows and columns; extremes: the extreme value of each row, or of all
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
% if not of_all:
    global const I *restrict rows, global const I *restrict columns,
% endif
    global const V *restrict values, global const V *restrict extremes, global I *restrict extreme_columns)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong k = begin; k < end; k += step) {
        const V a = values[k], b = extremes[${"0" if of_all else "rows[k]"}];
        extreme_columns[k] = ${same} ? ${"(I)k" if of_all else "columns[k]"} : I_MAX;
    }
}
