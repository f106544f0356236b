<%doc>
Row pointers of entries that are sorted by row.

Index space   work-items that stride over the rows and the end, or take adjacent ones: `spread` says which
Inputs        rows: of n_entries entries, ascending
Output        indptr
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong n_entries,
    global const I *restrict rows, global I *restrict indptr)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    ulong at = 0;
    for (ulong row = begin; row < end; row += step) {
        // Entries before `at` lie in earlier rows: a search for a row's beginning doubles its steps from `at` on, then bisects.
        // The search for the beginning of the first row of a work-item bisects all entries of the matrix.
        ulong reach = row == begin ? n_entries : 1;
        for (; at + reach <= n_entries && (ulong)rows[at + reach - 1] < row; reach *= 2)
            at += reach;
        for (ulong above = min(at + reach - 1, n_entries); at < above;) {
            const ulong middle = (at + above) / 2;
            if ((ulong)rows[middle] < row)
                at = middle + 1;
            else
                above = middle;
        }
        indptr[row] = (I)at;
    }
}
