<%doc>
Where each row of the Kronecker product of two sparse matrices begins.

Index space   a work-item for each row of the product, and one for the end
Inputs        the row pointers of A and B, which has rows
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong b_rows, global const I *restrict a_indptr, global const I *restrict b_indptr,
    global I *restrict indptr)
{
    const ulong row = get_global_id(0);
    if (row <= n_rows) {
        const ulong i = row / b_rows, k = row - i * b_rows;
        const I a_length = row < n_rows ? a_indptr[i + 1] - a_indptr[i] : 0;
        indptr[row] = a_indptr[i] * b_indptr[b_rows] + a_length * b_indptr[k];
    }
}
