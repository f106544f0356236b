<%doc>
The transposed of a small matrix: entries are counted by column, a scan tells where those of each column begin, and each entry
goes there. One work-item takes them in order, so they stay in order. Several take as many entries at a time as they are; a place
then follows from the number of entries before it that have its column.

Source        counting sort
Index space   one work-group
Inputs        n_rows, n_columns, nnz: `places` together at most, with an entry at least; rows in any order
Outputs       out_indptr, rows, and values or `positions`: of the transposed
Local memory  `places` numbers and, for several work-items, two more for each
Result        deterministic: rows ascend, duplicates stay in order
</%doc>
% if work_group > 1:
#include "group_scan.cl"
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_rows, const uint n_columns, const uint nnz, global const I *restrict indptr, global const I *restrict indices,
% if not positions:
    global const V *restrict data,
% endif
    global I *restrict out_indptr, global I *restrict rows, global V *restrict out)
{
    // next[column]: the place of the column's next entry in the transposed; after all entries, the column's end.
    local uint next[${places}];
% if work_group == 1:
    for (uint column = 0; column < n_columns; ++column)
        next[column] = 0;
    for (uint k = 0; k < nnz; ++k)
        ++next[indices[k]];
    uint begin = 0;
    out_indptr[0] = 0;
    for (uint column = 0; column < n_columns; ++column) {
        const uint count = next[column];
        next[column] = begin;
        begin += count;
        out_indptr[column + 1] = begin;
    }
    for (uint row = 0; row < n_rows; ++row)
        for (uint k = (uint)indptr[row], end = (uint)indptr[row + 1]; k < end; ++k) {
            const uint to = next[indices[k]]++;
            rows[to] = (I)row;
            out[to] = ${"(I)k" if positions else "data[k]"};
        }
% else:
    local uint scan_box[${work_group}], columns[${work_group}];
    const uint me = get_local_id(0);
    local uint *starts = next + n_columns, *placed = starts + n_rows;
    for (uint column = me; column < n_columns; column += ${work_group})
        next[column] = 0;
    for (uint row = me; row < n_rows; row += ${work_group})
        starts[row] = (uint)indptr[row];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = me; k < nnz; k += ${work_group})
        atomic_inc(&next[indices[k]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    // A work-item scans the counts of adjacent columns, from `first` to `last`.
    const uint span = (n_columns + ${work_group - 1}) / ${work_group};
    const uint first = min(me * span, n_columns), last = min(first + span, n_columns);
    uint begin = 0;
    for (uint column = first; column < last; ++column)
        begin += next[column];
    begin = group_scan_add(scan_box, begin);
    for (uint column = first; column < last; ++column) {
        const uint count = next[column];
        next[column] = begin;
        begin += count;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Column UINT_MAX stands for no entry: columns are smaller. The loop's bound is a constant of the compiler (quirk 4).
    for (uint at = 0; at < ${places}; at += ${work_group}) {
        const uint k = at + me, column = k < nnz ? (uint)indices[k] : UINT_MAX;
        columns[me] = column;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k < nnz) {
            uint before = 0;
            for (uint other = 0; other < me; ++other)
                before += columns[other] == column;
            placed[next[column] + before] = k;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k < nnz)
            atomic_inc(&next[column]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0)
        out_indptr[0] = 0;
    for (uint column = me; column < n_columns; column += ${work_group})
        out_indptr[column + 1] = (I)next[column];
    for (uint i = me; i < nnz; i += ${work_group}) {
        const uint k = placed[i];
        // `row` becomes the last row that begins at or before the entry.
        uint row = 0;
        for (uint step = ${first_step}; step > 0; step /= 2)
            if (row + step < n_rows && starts[row + step] <= k)
                row += step;
        rows[i] = (I)row;
        out[i] = ${"(I)k" if positions else "data[k]"};
    }
% endif
}
