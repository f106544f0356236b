<%doc>
Where the entries of each chunk in each bucket go among those of the bucket: an exclusive scan over the chunks of each bucket, in
place. Beside it, which row the first entry of each chunk lies in.

Source        own; `segments` sums of each bucket's chunks, then their scan
Index space   a work-group for each `columns` adjacent buckets; a work-item for each chunk in those behind them
Inputs        counts[chunk * 2 ** bits + bucket], of bucket_count; indptr has n_rows + 1 valid offsets
Output        behind the counts, how many entries each bucket has; rows: of each chunk's first entry
Local memory  a sum for each work-item
Result        exact
</%doc>
#include "first_from.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_chunks, const long n_rows, global const I *restrict indptr, global uint *restrict counts, global I *restrict rows)
{
    local uint sums[${columns * segments}];
    const uint me = get_local_id(0), column = me % ${columns}, segment = me / ${columns};
    const uint bucket = get_group_id(0) * ${columns} + column, share = (n_chunks + ${segments - 1}) / ${segments};
    const bool scans = get_group_id(0) < ${2 ** bits // columns};
    const uint begin = scans ? min(segment * share, n_chunks) : 0, end = scans ? min(begin + share, n_chunks) : 0;
    const uint chunk = scans ? n_chunks : (get_group_id(0) - ${2 ** bits // columns}) * ${work_group} + me;
    // The last row that begins at or before its first entry.
    if (chunk < n_chunks)
        rows[chunk] = first_from(indptr, 0, (I)n_rows, (I)(chunk * ${chunk} + 1)) - 1;
    global uint *mine = counts + bucket;
    uint sum = 0, k = begin;
    for (; k + ${unroll} <= end; k += ${unroll}) {
% for i in range(unroll):
        const uint count_${i} = mine[(ulong)(k + ${i}) << ${bits}];
% endfor
        sum += ${" + ".join(f"count_{i}" for i in range(unroll))};
    }
    for (; k < end; ++k)
        sum += mine[(ulong)k << ${bits}];
    if (segment < ${segments})
        sums[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before = 0, total = 0;
    for (uint i = 0; i < ${segments}; ++i) {
        const uint of_segment = sums[i * ${columns} + column];
        before += i < segment ? of_segment : 0;
        total += of_segment;
    }
    for (k = begin; k + ${unroll} <= end; k += ${unroll}) {
% for i in range(unroll):
        const uint count_${i} = mine[(ulong)(k + ${i}) << ${bits}];
% endfor
% for i in range(unroll):
        mine[(ulong)(k + ${i}) << ${bits}] = before;
        before += count_${i};
% endfor
    }
    for (; k < end; ++k) {
        const uint count = mine[(ulong)k << ${bits}];
        mine[(ulong)k << ${bits}] = before;
        before += count;
    }
    if (scans && segment == 0)
        mine[(ulong)n_chunks << ${bits}] = total;
}
