<%doc>
The place, among the entries of each bucket (of adjacent columns), of the first entry of each chunk: an exclusive scan over the
chunks of each bucket, in place.

Source        own; `segments` sums of each bucket's chunks, then their scan
Index space   a work-group for each `columns` adjacent buckets
Inputs        counts[chunk * 2 ** bits + bucket], of bucket_count
Output        behind the counts, how many entries each bucket has
Local memory  a sum for each work-item
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const uint n_chunks, global uint *restrict counts)
{
    local uint sums[${columns * segments}];
    const uint me = get_local_id(0), column = me % ${columns}, segment = me / ${columns};
    const uint bucket = get_group_id(0) * ${columns} + column, share = (n_chunks + ${segments - 1}) / ${segments};
    const uint begin = min(segment * share, n_chunks), end = min(begin + share, n_chunks);
    global uint *mine = counts + bucket;
    uint sum = 0;
    for (uint k = begin; k < end; k += ${unroll}) {
% for i in range(unroll):
        const uint count_${i} = k + ${i} < end ? mine[(ulong)(k + ${i}) << ${bits}] : 0;
% endfor
        sum += ${" + ".join(f"count_{i}" for i in range(unroll))};
    }
    if (segment < ${segments})
        sums[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before = 0, total = 0;
    for (uint i = 0; i < ${segments}; ++i) {
        const uint of_segment = sums[i * ${columns} + column];
        before += i < segment ? of_segment : 0;
        total += of_segment;
    }
    for (uint k = begin; k < end; k += ${unroll}) {
% for i in range(unroll):
        const uint count_${i} = k + ${i} < end ? mine[(ulong)(k + ${i}) << ${bits}] : 0;
% endfor
% for i in range(unroll):
        if (k + ${i} < end)
            mine[(ulong)(k + ${i}) << ${bits}] = before;
        before += count_${i};
% endfor
    }
    if (segment == 0)
        mine[(ulong)n_chunks << ${bits}] = total;
}
