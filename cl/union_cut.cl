// A place on the path through two sparse matrices row by row: the entries of a row of A and of B in the order of their columns, A's
// first of equal ones, then the row's end.
//
// union_row(place, n_rows, a_indptr, b_indptr): how many row ends come before a place, which is the place's row.
// union_a(place, row, n_rows, ...): how many entries of A come before.
// union_b(place, row, a, n_rows, ...): how many entries of B; with the next one if the place is between two entries of one column.
//
// The merge path of two sorted lists (Green, McColl and Bader, "GPU merge path"; Odeh et al., "Merge path - parallel merging made
// simple").
#ifndef WORK_GROUP
    #error "union_cut.cl needs the prelude of a kernel on structures: I, the type of indices and indptr"
#endif
I union_row(const ulong place, const I n_rows, global const I *restrict a_indptr, global const I *restrict b_indptr)
{
    // The last row that begins at or before the place. Each row end takes a place, so that no two rows begin at the same one.
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
