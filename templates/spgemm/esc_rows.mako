<%doc>
For each row of a list, or for all rows: the length of A's row and the number of its products, in the order of the list. Their
scans tell where the entries and the products of each begin.

Source        Dalton, Olson and Bell, Section 3.1
Index space   a work-item to a row
Inputs        products: by row
Local memory  none
Result        exact
</%doc>
#include "spgemm_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPGEMM_ROWS global const I *restrict a_indptr, global const uint *restrict products,
    global ulong *restrict lengths, global ulong *restrict row_products)
{
    const ulong slot = get_global_id(0);
    if (slot >= n_rows)
        return;
    const ulong row = SPGEMM_ROW(slot);
    lengths[slot] = (ulong)(a_indptr[row + 1] - a_indptr[row]);
    row_products[slot] = products[row];
}
