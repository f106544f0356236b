<%doc>
Copy the entries of a sparse matrix to where they stand in a larger matrix, of which it is a block.

Index space   a work-group takes `tile` entries side by side; its work-items take neighbours in turn
Inputs        a valid structure, in any order; base, and shifts from `shift_begin` on: for each row, what is added to an entry's
              position
Local memory  none
Result        entries of a row keep their order; their columns are `column_begin` larger
</%doc>
#include "row_of.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong tile, const I n_rows, const I column_begin, const I base, const ulong shift_begin,
    global const I *restrict indptr, global const I *restrict indices, global const V *restrict values,
    global const I *restrict shifts, global I *restrict block_indices, global V *restrict block_values)
{
    const ulong begin = get_group_id(0) * tile + get_local_id(0), end = min(n, get_group_id(0) * tile + tile);
    I row = 0, shift = 0;
    ulong row_end = 0;
    for (ulong at = begin; at < end; at += ${work_group}) {
        if (at >= row_end) {
            row = row_of(indptr, row, n_rows - 1, at == begin ? n_rows / 2 + 1 : 1, (I)at);
            row_end = indptr[row + 1];
            shift = base + shifts[shift_begin + row];
        }
        const I to = (I)at + shift;
        block_indices[to] = indices[at] + column_begin;
        block_values[to] = values[at];
    }
}
