// Cuts of the merge path of two sparse matrices A and B.
// The merge path goes row by row: entries of A's and B's row by column (A's first of equal ones), then a step for the row's end.
// A place on the merge path is given as the number of steps before it.
//
// union_row(place, n_rows, a_indptr, b_indptr): the row of a place on the merge path: the number of row ends before it.
// union_a(place, row, n_rows, ...): the number of entries of A before a place on the merge path.
// union_b(place, row, a, n_rows, ...): the number of entries of B before a place on the merge path.
//     union_b is one more if the cut would split a pair of equal columns.
//
// Merge path of two sorted lists: Green, McColl and Bader, "GPU merge path".
// Merge path of two sorted lists: Odeh et al., "Merge path - parallel merging made simple".
#ifndef WORK_GROUP
    #error "union_cut.cl needs the prelude of a kernel on structures: I, the type of indices and indptr"
#endif
I union_row(const ulong place, const I n_rows, global const I *restrict a_indptr, global const I *restrict b_indptr)
{
    // `row` becomes the last row that begins at or before the place on the merge path.
    // No two rows begin at the same place of the path, as the end of a row takes a step.
    I row = 0, after = n_rows + 1;
    while (after - row > 1) {
        const I middle = row + (after - row) / 2;
        if ((ulong)a_indptr[middle] + b_indptr[middle] + middle <= place)
            row = middle;
        else
            after = middle;
    }
    return row;
}

I union_a(
    const ulong place, const I row, const I n_rows, global const I *restrict a_indptr, global const I *restrict a_indices,
    global const I *restrict b_indptr, global const I *restrict b_indices)
{
    const I a = a_indptr[row], b = b_indptr[row];
    if (row == n_rows)
        return a;
    const I a_length = a_indptr[row + 1] - a, b_length = b_indptr[row + 1] - b;
    const I diagonal = (I)(place - ((ulong)a + b + row));
    I of_a = max(diagonal - b_length, (I)0), high = min(diagonal, a_length);
    while (of_a < high) {
        const I middle = of_a + (high - of_a) / 2;
        if (a_indices[a + middle] <= b_indices[b + diagonal - 1 - middle])
            of_a = middle + 1;
        else
            high = middle;
    }
    return a + of_a;
}

I union_b(
    const ulong place, const I row, const I a, const I n_rows, global const I *restrict a_indptr,
    global const I *restrict a_indices, global const I *restrict b_indptr, global const I *restrict b_indices)
{
    const I b = (I)(place - row - a);
    if (row == n_rows || a == a_indptr[row] || b == b_indptr[row + 1])
        return b;
    return a_indices[a - 1] == b_indices[b] ? b + 1 : b;
}
