<%doc>
Row pointers of sparse matrices that stand side by side, and how far the entries of each row of each matrix move.

Index space   a work-item for each row, and one for the end
Inputs        pointers: the row pointers of each block, one block after another; base: how many entries come before the first row
Output        indptr from `row_begin` on; shifts: for each block a number for each row, which is added to an entry's position
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong n_blocks, const I base, const ulong row_begin,
    global const I *restrict pointers, global I *restrict indptr, global I *restrict shifts)
{
    const ulong row = get_global_id(0);
    if (row > n_rows)
        return;
    I at = base;
    for (ulong b = 0; b < n_blocks; ++b)
        at += pointers[b * (n_rows + 1) + row];
    indptr[row_begin + row] = at;
    if (row == n_rows)
        return;
    for (ulong b = 0; b < n_blocks; ++b) {
        global const I *of_row = pointers + b * (n_rows + 1) + row;
        shifts[b * n_rows + row] = at - of_row[0];
        at += of_row[1] - of_row[0];
    }
}
