<%doc>
How many entries of a bucket of several parts lie in each of the bucket's columns: for each part, the entries of the parts before
it in its run (adjacent parts that one work-group counts); for each run, the entries of all its parts.

Source        as bucket_count, a digit lower
Index space   a work-group for each run of parts of `tile` entries; work-groups beyond the last run do nothing
Inputs        bounds, moved: of bucket_move
Output        starts[part * 2 ** bits + column]; of_runs[run * 2 ** bits + column]
Local memory  2 ** `bits` counters
Result        exact
</%doc>
#include "bucket_part.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_buckets, const uint row_bits, global const uint *restrict bounds, global const R *restrict moved,
    global uint *restrict starts, global uint *restrict of_runs)
{
    local uint counts[${2 ** bits}];
    local uint box;
    const uint me = get_local_id(0), run = get_group_id(0);
    global const uint *parts_before = bounds + n_buckets + 1, *runs_before = parts_before + n_buckets + 1;
    const bool active = run < runs_before[n_buckets];
% if skips:
    if (!active)
        return;
% endif
    const uint bucket = bucket_of_part(&box, runs_before, n_buckets, run);
    const uint in_run = RUN_OF(parts_before[bucket + 1] - parts_before[bucket]);
    const uint first = parts_before[bucket] + (run - runs_before[bucket]) * in_run, end_of_bucket = bounds[bucket + 1];
    const uint begin = bounds[bucket] + (first - parts_before[bucket]) * ${tile};
    for (uint i = me; i < ${2 ** bits}; i += ${work_group})
        counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint turn = 0; turn < in_run; ++turn) {
        const uint part = first + turn, end = active ? min(end_of_bucket, begin + (turn + 1) * ${tile}) : 0;
        const bool has_part = active && part < parts_before[bucket + 1];
        for (uint i = me; i < (has_part ? ${2 ** bits} : 0); i += ${work_group})
            starts[((ulong)part << ${bits}) + i] = counts[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        uint k = begin + turn * ${tile} + me;
        for (; k + ${(unroll - 1) * work_group} < end; k += ${unroll * work_group}) {
% for i in range(unroll):
            const W word_${i} = WORD_OF(moved[k + ${i * work_group}]);
% endfor
% for i in range(unroll):
            atomic_inc(counts + (uint)(word_${i} >> row_bits));
% endfor
        }
        for (; k < end; k += ${work_group})
            atomic_inc(counts + (uint)(WORD_OF(moved[k]) >> row_bits));
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = me; i < (active ? ${2 ** bits} : 0); i += ${work_group})
        of_runs[((ulong)run << ${bits}) + i] = counts[i];
}
