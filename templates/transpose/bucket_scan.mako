<%doc>
Where the entries of each run of parts of a bucket go in each column, for buckets of several parts: a scan over their columns,
and over the runs of each column, in place.

Source        own
Index space   a work-group for each bucket; those of one part do nothing
Inputs        bounds: of bucket_move; of_runs: of bucket_split
Output        pointers: where each column of these buckets begins
Local memory  a sum for each work-item
Result        exact
</%doc>
#include "group_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_buckets, const long n_cols, global const uint *restrict bounds, global uint *restrict of_runs,
    global I *restrict pointers)
{
    local uint sums[${work_group}];
    local uint box[${work_group}];
    local uint next;
    const uint me = get_local_id(0), column = me % ${columns}, segment = me / ${columns}, bucket = get_group_id(0);
    const uint first = bounds[2 * n_buckets + 2 + bucket], n_runs = bounds[2 * n_buckets + 3 + bucket] - first;
% if skips:
    if (n_runs == 0)
        return;
% endif
    const uint share = (n_runs + ${segments - 1}) / ${segments};
    const uint begin = segment < ${segments} ? min(segment * share, n_runs) : n_runs, end = min(begin + share, n_runs);
    if (me == 0)
        next = bounds[bucket];
    for (uint step = 0; step < ${2 ** bits // columns}; ++step) {
        const uint digit = step * ${columns} + column;
        global uint *mine = of_runs + ((ulong)first << ${bits}) + digit;
        uint sum = 0, k = begin;
        for (; k + ${unroll} <= end; k += ${unroll}) {
% for i in range(unroll):
            const uint count_${i} = mine[(ulong)(k + ${i}) << ${bits}];
% endfor
            sum += ${" + ".join(f"count_{i}" for i in range(unroll))};
        }
        for (; k < end; ++k)
            sum += mine[(ulong)k << ${bits}];
        sums[me] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        uint before = 0, total = 0;
        for (uint i = 0; i < ${segments}; ++i) {
            const uint of_segment = sums[i * ${columns} + column];
            before += i < segment ? of_segment : 0;
            total += of_segment;
        }
        const uint start = next + group_scan_add(box, segment == 0 ? total : 0);
        if (segment == 0) {
            box[column] = start;
            const long at = ((long)bucket << ${bits}) + digit;
            if (n_runs && at < n_cols)
                pointers[at] = (I)start;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me == ${columns - 1})
            next = start + total;
        before += box[column];
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
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
