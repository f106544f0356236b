<%doc>
Select a few rows of a matrix, one behind the other: how many entries the rows have, where each row begins in the result, and a
gather of the entries.

Each work-group finds where all rows begin for itself, so that none waits for another, and gathers its share of the entries.

Index space   any number of work-groups
Inputs        rows: indices of n of the matrix's n_rows rows, integers of any type, those below 0 counted from the end, in any
              order, repeated or not; n is `work_group * items` at most, and the entries fewer than 2^31
Output        starts, of which the last number is how many entries there are or, if indices are out of range, how many of them,
              negated; out_indices and out_values, with room for all entries
Local memory  two numbers for each row; one for each work-item
Result        exact
</%doc>
#include "group_scan.cl"
<% most = work_group * items %>\

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n, const long n_rows, global const ${listed_type} *restrict rows,
    global const I *restrict indptr, global const I *restrict indices, global const V *restrict values,
    global I *restrict starts, global I *restrict out_indices, global V *restrict out_values)
{
    local uint scan_box[${work_group}], begins[${most + 1}], n_outside;
    local I sources[${most}];
    const uint me = get_local_id(0);
    if (me == 0)
        n_outside = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint length = 0;
% for i in range(items):
    const uint at_${i} = me * ${items} + ${i};
    uint length_${i} = 0;
    if (at_${i} < n) {
        const ${listed_type} index = rows[at_${i}];
% if is_signed:
        const bool is_in = index >= -n_rows && index < n_rows;
        const I row = is_in ? (I)(index < 0 ? (long)index + n_rows : (long)index) : 0;
% else:
        const bool is_in = (ulong)index < (ulong)n_rows;
        const I row = is_in ? (I)index : 0;
% endif
        if (is_in) {
            sources[at_${i}] = indptr[row];
            length_${i} = (uint)(indptr[row + 1] - indptr[row]);
        } else
            atomic_inc(&n_outside);
    }
    length += length_${i};
% endfor
    uint begin = group_scan_add(scan_box, length);
% for i in range(items):
    if (at_${i} < n)
        begins[at_${i}] = begin;
    begin += length_${i};
% endfor
    if (me == ${work_group - 1})
        begins[n] = begin;
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint nnz = n_outside == 0 ? begins[n] : 0;
    if (get_group_id(0) == 0)
        for (uint i = me; i <= n; i += ${work_group})
            starts[i] = i == n && n_outside > 0 ? -(I)n_outside : (I)begins[i];
    for (uint entry = get_global_id(0); entry < nnz; entry += get_global_size(0)) {
        uint row = 0, after = n;
        while (after - row > 1) {
            const uint middle = (row + after) / 2;
            if (begins[middle] <= entry)
                row = middle;
            else
                after = middle;
        }
        const I source = sources[row] + (I)(entry - begins[row]);
        out_indices[entry] = indices[source];
        out_values[entry] = values[source];
    }
}
