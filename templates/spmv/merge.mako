<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], each work-item taking the same number of steps on the merge path of row beginnings
and entries. A part's sum of a row that an earlier part began goes to partial[part].

Source        Merrill and Garland, SC 2016 (merge-based SpMV), with the beginnings of rows in place of their ends
Index space   n_parts work-groups
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako with row_weight 1, slack 0 and step work_group * items;
              columns in any order, duplicates allowed; rows may be empty
Local memory  work_group * items * (sizeof(T) + sizeof(uint)), and work_group * (sizeof(T) + sizeof(I))
Result        deterministic: the path is always cut in the same places
</%doc>
<% capacity = work_group * items %>
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    global const I *restrict part_row, global const I *restrict part_entry, global T *restrict partial,
    global const I *restrict indptr, global const I *restrict indices)
{
    local T products[${capacity}];
    local uint starts[${capacity}];     // where the part's rows begin, counted from its first entry
    local T tail[${work_group}];        // each work-item's unfinished sum, ...
    local uint tail_row[${work_group}]; // ... and its row, counted from the row before the part's first
    global const X_VALUE *restrict x = x_base + x_offset;
    global T *restrict y = y_base + y_offset;
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
    const I row_begin = part_row[part], begin = part_entry[part];
    const uint n_starts = (uint)(part_row[part + 1] - row_begin), n_entries = (uint)(part_entry[part + 1] - begin);

    for (uint k = me; k < n_entries; k += ${work_group})
        products[k] = MULTIPLY(LOAD_A(data + begin + k), LOAD_X(x + LOAD_INDEX(indices + begin + k)));
    for (uint i = me; i < n_starts; i += ${work_group})
        starts[i] = (uint)(indptr[row_begin + i] - begin);
    barrier(CLK_LOCAL_MEM_FENCE);

    // The merge path (row beginnings and entries in order) crosses a work-item's diagonal behind i row beginnings and k entries.
    const uint diagonal = min(me * ${items}, n_starts + n_entries);
    uint low = max((int)diagonal - (int)n_entries, 0), high = min(diagonal, n_starts);
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (starts[middle] <= diagonal - 1 - middle)
            low = middle + 1;
        else
            high = middle;
    }
    uint i = low, k = diagonal - low;
    const uint last = min(diagonal + ${items}, n_starts + n_entries);

    // Row 0 is the row that an earlier part of A began, row r is the part's r-th row.
    // The first row that ends in a work-item may have begun in an earlier one: that row's sum waits for earlier work-items' sums.
    const uint row_first = i;
    T sum = ZERO, sum_first = ZERO;
    for (uint step = diagonal; step < last; ++step) {
        if (i < n_starts && starts[i] <= k) {
            if (i == row_first)
                sum_first = sum;
            else
                update(SCALE_ARGUMENTS y + row_begin + (i - 1), sum);
            sum = ZERO;
            ++i;
        } else {
            sum = ADD(sum, products[k]);
            ++k;
        }
    }
    // Unfinished sums of one row are added from work-items at distance 1, 2, 4, ...: always in the same order.
    tail[me] = sum;
    tail_row[me] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint distance = 1; distance < ${work_group}; distance *= 2) {
        const bool joins = me >= distance && tail_row[me - distance] == i;
        const T before = joins ? tail[me - distance] : ZERO;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (joins)
            tail[me] = ADD(before, tail[me]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i > row_first) {
        const T total = me > 0 && tail_row[me - 1] == row_first ? ADD(tail[me - 1], sum_first) : sum_first;
        if (row_first > 0)
            update(SCALE_ARGUMENTS y + row_begin + (row_first - 1), total);
        else
            partial[part] = total;
    }
    if (me == ${work_group - 1}) {
        if (i > 0)
            update(SCALE_ARGUMENTS y + row_begin + (i - 1), tail[me]);
        else
            partial[part] = tail[me];
    }
}
