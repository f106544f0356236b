<%doc>
Row pointers of two sparse matrices that stand side by side.

Index space   a work-item for each row, and one for the end
Inputs        both row pointers; base: how many entries come before the first row
Output        indptr from `row_begin` on
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const I base, const ulong row_begin,
    global const I *restrict left, global const I *restrict right, global I *restrict indptr)
{
    const ulong row = get_global_id(0);
    if (row <= n_rows)
        indptr[row_begin + row] = base + left[row] + right[row];
}
