<%doc>
How many entries of each chunk lie in each bucket: counts[chunk * 2 ** bits + bucket]. A bucket has 2 ** shift adjacent columns.
With `small` also which row the first entry of each chunk lies in.

Source        the first step of a radix sort by the highest digit; Satish, Harris and Garland, "Designing efficient sorting
              algorithms for manycore GPUs"
Index space   a work-group for each chunk of `chunk` adjacent entries
Inputs        indices: columns below 2 ** (shift + bits); indptr has n_rows + 1 valid offsets
Local memory  2 ** `bits` counters
Result        exact
</%doc>
% if small:
#include "first_from.cl"

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n, const uint shift,
% if small:
    const long n_rows, global const I *restrict indptr, global I *restrict rows,
% endif
    global const I *restrict indices, global uint *restrict counts)
{
    local uint found[${2 ** bits}];
    const uint me = get_local_id(0);
    for (uint i = me; i < ${2 ** bits}; i += ${work_group})
        found[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
% if small:
    // The last row that begins at or before it.
    if (me == 0)
        rows[get_group_id(0)] = first_from(indptr, 0, (I)n_rows, (I)(get_group_id(0) * ${chunk} + 1)) - 1;
% endif
    const ulong first = (ulong)get_group_id(0) * ${chunk};
    const ulong end = min(first + ${chunk}, (ulong)n);
    ulong begin = first;
    for (; begin + ${unroll * work_group} <= end; begin += ${unroll * work_group}) {
% for i in range(unroll):
        const I column_${i} = indices[begin + ${i * work_group} + me];
% endfor
% for i in range(unroll):
        atomic_inc(found + (uint)(column_${i} >> shift));
% endfor
    }
    for (ulong k = begin + me; k < end; k += ${work_group})
        atomic_inc(found + (uint)(indices[k] >> shift));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < ${2 ** bits}; i += ${work_group})
        counts[((ulong)get_group_id(0) << ${bits}) + i] = found[i];
}
