<%doc>
Cut two matrices into tiles of about equal work: how many rows, entries of A and entries of B come before each tile.

Source        the merge path of two sorted lists, row by row, as union_cut.cl has it. Tile i begins at place i * step, or
              one place later: never between two entries of one row and column
Index space   a work-item for each tile, and one for the end
Inputs        both matrices in canonical format, of the same shape, with a row at least
Output        cuts: three numbers for each tile, and for the end: rows, entries of A, entries of B before it; starts and
              indptr: their first number, 0
Local memory  none
Result        exact
</%doc>
#include "union_cut.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const ulong n_places, const ulong step, const ulong n_tiles,
    global const I *restrict a_indptr, global const I *restrict a_indices,
    global const I *restrict b_indptr, global const I *restrict b_indices,
    global I *restrict cuts, global I *restrict starts, global I *restrict indptr)
{
    const ulong tile = get_global_id(0), place = min(tile * step, n_places);
    if (tile > n_tiles)
        return;
    if (tile == 0)
        starts[0] = indptr[0] = 0;

    const I row = union_row(place, n_rows, a_indptr, b_indptr);
    const I a = union_a(place, row, n_rows, a_indptr, a_indices, b_indptr, b_indices);
    cuts[3 * tile] = row;
    cuts[3 * tile + 1] = a;
    cuts[3 * tile + 2] = union_b(place, row, a, n_rows, a_indptr, a_indices, b_indptr, b_indices);
}
