<%doc>
The entries of a matrix of blocks as CSR. Two phases: "pointers" writes the row pointers, "entries" columns and values.

Source        own
Index space   "pointers": a work-item for each row, and one for the end; "entries": one for each row of each block
Inputs        rows: the block row of each block; I holds the number of entries
Local memory  none
Result        entries of a row in the order of its blocks, zeros too: sorted or canonical if the blocks are
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const I block_rows, const I block_columns, global const I *restrict indptr,
% if phase == "pointers":
    global I *restrict pointers)
% else:
    global const I *restrict rows, global const I *restrict indices, global const V *restrict blocks,
    global I *restrict columns, global V *restrict values)
% endif
{
    const ulong i = get_global_id(0);
% if phase == "pointers":
    if (i <= n) {
        const ulong row = i / block_rows, r = i - row * block_rows;
        const ulong begin = indptr[row], length = i < n ? indptr[row + 1] - begin : 0;
        pointers[i] = (I)((begin * block_rows + r * length) * block_columns);
    }
% else:
    if (i < n) {
        const ulong k = i / block_rows, r = i - k * block_rows, row = rows[k], begin = indptr[row], length = indptr[row + 1] - begin;
        const ulong at = (begin * block_rows + r * length + (k - begin)) * block_columns;
        const I column = indices[k] * block_columns;
        for (I c = 0; c < block_columns; ++c) {
            columns[at + c] = column + c;
            values[at + c] = blocks[i * block_columns + c];
        }
    }
% endif
}
