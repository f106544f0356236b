<%doc>
Cut two matrices into tiles of about equal work: how many rows, entries of A and entries of B come before each tile.

Source        the merge path of two sorted lists (Green, McColl and Bader, "GPU merge path"; Odeh et al., "Merge path -
              parallel merging made simple"), row by row: the entries of a row of A and of B in the order of their columns,
              A's first of equal ones, then the row's end. Tile i begins at place i * step, or one place later: never between
              two entries of one row and column
Index space   a work-item for each tile, and one for the end
Inputs        both matrices in canonical format, of the same shape, with a row at least
Output        cuts: three numbers for each tile, and for the end: rows, entries of A, entries of B before it; starts and
              indptr: their first number, 0
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const ulong n_places, const ulong step, const ulong n_tiles,
    global const I *restrict a_indptr, global const I *restrict a_indices,
    global const I *restrict b_indptr, global const I *restrict b_indices,
    global I *restrict cuts, global I *restrict starts, global I *restrict indptr)
{
    const ulong tile = get_global_id(0), place = tile * step;
    if (tile > n_tiles)
        return;
    if (tile == 0)
        starts[0] = indptr[0] = 0;

    // The row of the place: the last one that begins at or before it. Each row end takes a place, so that no two rows begin at the
    // same one.
    I row = 0, after = n_rows + 1;
    while (after - row > 1) {
        const I middle = row + (after - row) / 2;
        if ((ulong)a_indptr[middle] + b_indptr[middle] + middle <= place)
            row = middle;
        else
            after = middle;
    }
    I a = a_indptr[row], b = b_indptr[row];
    if (row < n_rows) {
        // How many entries of A and of B come before the place in its row.
        const I a_length = a_indptr[row + 1] - a, b_length = b_indptr[row + 1] - b;
        const I diagonal = (I)(place - ((ulong)a + b + row));
        I of_a = max(diagonal - b_length, (I)0), most = min(diagonal, a_length);
        while (of_a < most) {
            const I middle = of_a + (most - of_a) / 2;
            if (a_indices[a + middle] <= b_indices[b + diagonal - 1 - middle])
                of_a = middle + 1;
            else
                most = middle;
        }
        a += of_a;
        b += diagonal - of_a;
        b += of_a > 0 && diagonal - of_a < b_length && a_indices[a - 1] == b_indices[b];
    }
    cuts[3 * tile] = row;
    cuts[3 * tile + 1] = a;
    cuts[3 * tile + 2] = b;
}
