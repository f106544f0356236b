<%doc>
How many entries of each chunk lie in each bucket: counts[chunk * 2 ** bits + bucket]. A bucket has 2 ** shift adjacent columns.
Also, the row in which the first entry of each chunk lies.

Source        the first step of a radix sort by the highest digit; Satish, Harris and Garland, "Designing efficient sorting
              algorithms for manycore GPUs"
Index space   a work-group for each chunk of `chunk` adjacent entries; each also looks at as many rows as others
Inputs        indices: columns below 2 ** (shift + bits); indptr has n_rows + 1 valid offsets
Output        rows: of each chunk's first entry
Local memory  2 ** `bits` counters
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n, const uint shift, const long n_rows, global const I *restrict indptr, global const I *restrict indices,
    global I *restrict rows, global uint *restrict counts)
{
    local uint bucket_counts[${2 ** bits}];
    const uint me = get_local_id(0);
    for (uint i = me; i < ${2 ** bits}; i += ${work_group})
        bucket_counts[i] = 0;
    const ulong first = (ulong)get_group_id(0) * ${chunk};
    const ulong end = min(first + ${chunk}, (ulong)n);
    const long share = (n_rows + get_num_groups(0) - 1) / get_num_groups(0);
    const long behind = min(n_rows, share * (long)(get_group_id(0) + 1));
    for (long row = share * get_group_id(0) + me; row < behind; row += ${row_unroll * work_group}) {
% for i in range(row_unroll):
        const bool is_there_${i} = row + ${i * work_group} < behind;
        const ulong begin_${i} = is_there_${i} ? (ulong)indptr[row + ${i * work_group}] : 0;
        const ulong end_${i} = is_there_${i} ? (ulong)indptr[row + ${i * work_group + 1}] : 0;
% endfor
% for i in range(row_unroll):
        for (ulong at = (begin_${i} + ${chunk - 1}) / ${chunk}; at * ${chunk} < end_${i}; ++at)
            rows[at] = (I)(row + ${i * work_group});
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong begin = first;
    for (; begin + ${unroll * work_group} <= end; begin += ${unroll * work_group}) {
% for i in range(unroll):
        const I column_${i} = indices[begin + ${i * work_group} + me];
% endfor
% for i in range(unroll):
        atomic_inc(bucket_counts + (uint)(column_${i} >> shift));
% endfor
    }
    for (ulong k = begin + me; k < end; k += ${work_group})
        atomic_inc(bucket_counts + (uint)(indices[k] >> shift));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < ${2 ** bits}; i += ${work_group})
        counts[((ulong)get_group_id(0) << ${bits}) + i] = bucket_counts[i];
}
