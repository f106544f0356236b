// The rows of the entries of a tile, which is a part of a matrix as partition.mako cuts it.
// A tile begins with entry `begin`; `row_begin` is the first row that begins at or after that entry.
// A tile has n_rows rows from `first` on that have entries in the tile, or begin in it.
//
// tile_first_row(row_begin, begin, indptr):               the row of the tile's first entry.
// tile_stage_rows(starts, n_rows, first, begin, indptr):  starts[r] becomes the first entry of the tile's row r.
//                                                         Entries are counted from the tile's beginning.
//                                                         The whole work-group has to call tile_stage_rows.
// tile_row(starts, n_rows, entry):                        the row of an entry; both are counted from the tile's beginning.
#ifndef WORK_GROUP
    #error "tile_rows.cl needs WORK_GROUP: the work-group size"
#endif
I tile_first_row(const I row_begin, const I begin, global const I *indptr)
{
    return row_begin - (begin < indptr[row_begin] ? 1 : 0);
}

void tile_stage_rows(local uint *starts, const uint n_rows, const I first, const I begin, global const I *indptr)
{
    for (uint r = get_local_id(0); r < n_rows; r += WORK_GROUP)
        starts[r] = (uint)(max(indptr[first + r], begin) - begin);
    barrier(CLK_LOCAL_MEM_FENCE);
}

uint tile_row(local const uint *starts, const uint n_rows, const uint entry)
{
    // `row` becomes the last row that begins at or before the entry; earlier rows that begin at the same entry are empty.
    uint row = 0;
    for (uint above = n_rows; row + 1 < above;) {
        const uint middle = (row + above) / 2;
        if (starts[middle] <= entry)
            row = middle;
        else
            above = middle;
    }
    return row;
}
