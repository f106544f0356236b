<%doc>
The row of each entry of a matrix: from CSR to coordinates.

Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        a valid structure, whose last row ends with the last entry
Output        rows[k]: the row that entry k lies in, found from that of the work-item's last by steps that double, then halve
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong n_rows,
    global const I *restrict indptr, global I *restrict rows)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    ulong row = 0;
    for (ulong k = begin; k < end; k += step) {
        if ((ulong)indptr[row + 1] <= k) {
            // Row `row` begins at or before the entry, row `above` behind it. Of the first entry nothing is near.
            ulong reach = k == begin ? n_rows : 1;
            for (++row; row + reach < n_rows && (ulong)indptr[row + reach] <= k; reach *= 2)
                row += reach;
            for (ulong above = min(row + reach, n_rows); row + 1 < above;) {
                const ulong middle = (row + above) / 2;
                if ((ulong)indptr[middle] <= k)
                    row = middle;
                else
                    above = middle;
            }
        }
        rows[k] = (I)row;
    }
}
