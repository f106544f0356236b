<%doc>
same[row]: whether a row has the columns of the row before, in the same order.

Source        own
Index space   a work-item to a row
Inputs        CSR; columns in any order
Output        same: 0 or 1 for each row, 0 for the first
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const I n_rows, global const I *restrict indptr, global const I *restrict indices, global uchar *restrict same)
{
    const ulong row = get_global_id(0);
    if (row >= n_rows)
        return;
    const ulong begin = indptr[row], n = indptr[row + 1] - begin;
    bool is_same = row > 0 && indptr[row - 1] + n == begin;
    for (ulong k = begin; is_same && k < begin + n; ++k)
        is_same = indices[k] == indices[k - n];
    same[row] = is_same;
}
