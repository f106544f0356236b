<%doc>
The blocks in which a CSR matrix has entries. A work-item walks the rows of a block row side by side, block by block. Two
phases: "count" writes the number of blocks of a block row, "fill" the columns and values of the blocks.

Source        own
Index space   a work-item to a block row
Inputs        rows sorted, duplicates allowed; a shape that blocks of `block_rows` x `block_columns` divide; places: scratch, an
              index for each row; pointers, of "fill": the row pointers of the blocks
Local memory  none
Result        sorted, without duplicates: duplicates are summed in their order
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_block_rows, const I n_columns, const I block_rows, const I block_columns,
    global const I *restrict indptr, global const I *restrict indices, global I *restrict places,
% if phase == "count":
    global I *restrict counts)
% else:
    global const V *restrict values, global const I *restrict pointers, global I *restrict columns, global V *restrict blocks)
% endif
{
    const ulong i = get_global_id(0);
    if (i >= n_block_rows)
        return;
    const I first_row = (I)i * block_rows, row_end = first_row + block_rows;
    for (I row = first_row; row < row_end; ++row)
        places[row] = indptr[row];
% if phase == "count":
    I n = 0;
% else:
    I at = pointers[i];
% endif
    while (true) {
        I first = n_columns;
        for (I row = first_row; row < row_end; ++row)
            if (places[row] < indptr[row + 1])
                first = min(first, indices[places[row]]);
        if (first == n_columns)
            break;
        const I column = first / block_columns, begin = column * block_columns, end = begin + block_columns;
% if phase == "fill":
        columns[at] = column;
        global V *restrict block = blocks + (ulong)at * block_rows * block_columns;
        for (ulong e = 0; e < (ulong)block_rows * block_columns; ++e)
            block[e] = (V)(0);
% endif
        for (I row = first_row; row < row_end; ++row) {
            const I last = indptr[row + 1];
            I place = places[row];
            for (; place < last && indices[place] < end; ++place) {
% if phase == "fill":
                global V *restrict target = block + (ulong)(row - first_row) * block_columns + (indices[place] - begin);
                *target = SUM(*target, values[place]);
% endif
            }
            places[row] = place;
        }
        ${"++n" if phase == "count" else "++at"};
    }
% if phase == "count":
    counts[i] = n;
% endif
}
