<%doc>
Group segments by their lengths. Step "${step}": ${{"count": "how many segments of each class each work-group has, and whether the pointers are valid", "place": "write their numbers to the lists of the classes"}[step]}.

Classes are the segments of up to ${", ".join(str(longest) for longest in bins) or "no"} elements; ${
    f"then those of more than {tile} whose runs are merged, " if given else ""}then those of more than ${tile} that are cut into tiles. ${
    "Shorter ones" if not bins else "Empty ones"} are in none.

Source        the bins of Hou et al., "Fast segmented sort on GPUs", by powers of two
Index space   any number of work-groups, the same in both steps; each has a chunk of adjacent segments${" and strides over runs" if given and step == "count" else ""}
Inputs        ${"segment_ptr: n_segments + 1; run_ptr: n_runs + 1; both" if given else "bounds: n_segments + 1,"} unchecked
Output        count: found[${n_rows} * group + row]; the first ${n_classes} rows count the segments of each class, row ${n_classes + 1} the tiles of the
              last, row ${n_classes} those of the class before it${"" if given else " (none)"}. Then the most rounds that one of these segments takes; how often
              ${"segment_ptr decreases; how often run_ptr decreases; the most rounds that any segment takes. And bounds" if given else "bounds decreases"}.
              place: lists, one behind the other, where starts[${n_classes} * group + class] is the scan of the counts over all groups,
              class by class; tiles[i], the tiles of the i-th of the segments of more than ${tile} elements
Local memory  a counter a class; count: work_group * sizeof(long)
Result        count: exact. place: the order within a list is not determined
</%doc>
#include "segment_runs.cl"
% if step == "count":
#include "group.cl"
% endif

int class_of(const Segment s)
{
    const long length = s.end - s.begin;
% for i, longest in enumerate(bins):
    if (length <= ${longest})
        return ${"length > 0 ? 0 : -1" if i == 0 else i};
% endfor
% if not bins:
    if (length <= ${tile})
        return -1;
% endif
    return ${f"s.cut ? {n_classes - 1} : {n_classes - 2}" if given else n_classes - 1};
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if step == "count":
    const ulong n_segments,${" const long n_runs," if given else ""} RUN_PARAMETERS global ${"I" if given else "const I"} *restrict bounds,
    global long *restrict found)
% else:
    const ulong n_segments, RUN_PARAMETERS global const I *restrict bounds, global const long *restrict starts,
    global I *restrict lists, global I *restrict tiles)
% endif
{
    local uint counters[${n_classes}];
    const uint me = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    const ulong per_group = (n_segments + groups - 1) / groups;
    const ulong begin = min(group * per_group, n_segments), end = min(begin + per_group, n_segments);
    for (uint i = me; i < ${n_classes}; i += ${work_group})
        counters[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
% if step == "count":
    long n_merged = 0, n_cut = 0, rounds = 0, decreasing = 0;
% if given:
    long runs_decrease = 0, most_rounds = 0;
    for (long run = get_global_id(0); run < n_runs; run += get_global_size(0))
        runs_decrease += run_ptr[run + 1] < run_ptr[run];
    if (get_global_id(0) == 0)
        bounds[n_segments] = run_ptr[clamp((long)segment_ptr[n_segments], (long)0, n_runs)];
% endif
    for (ulong number = begin + me; number < end; number += ${work_group}) {
% if given:
        const long first = segment_ptr[number], last = segment_ptr[number + 1];
        const long from = run_ptr[clamp(first, (long)0, n_runs)], to = run_ptr[clamp(last, (long)0, n_runs)];
        bounds[number] = (I)from;
        decreasing += last < first;
        most_rounds = max(most_rounds, (long)rounds_of(last - first));
        const Segment s = segment_between(from, to, first, last - first);
% else:
        const Segment s = segment_at(bounds, number);
        decreasing += s.end < s.begin;
% endif
        const int class = class_of(s);
        if (class >= 0)
            atomic_inc(counters + class);
        if (class >= ${len(bins)}) {
            const long n_tiles = (s.end - s.begin + ${tile - 1}) / ${tile};
            if (s.cut)
                n_cut += n_tiles;
            else
                n_merged += n_tiles;
            rounds = max(rounds, (long)s.rounds);
        }
    }
    local long box[${work_group}];
    n_merged = group_reduce_add(box, n_merged);
    n_cut = group_reduce_add(box, n_cut);
    rounds = -group_reduce_min(box, -rounds);
    decreasing = group_reduce_add(box, decreasing);
% if given:
    runs_decrease = group_reduce_add(box, runs_decrease);
    most_rounds = -group_reduce_min(box, -most_rounds);
% endif
    global long *mine = found + ${n_rows} * (ulong)group;
    for (uint i = me; i < ${n_classes}; i += ${work_group})
        mine[i] = counters[i];
    if (me == 0) {
        mine[${n_classes}] = n_merged;
        mine[${n_classes + 1}] = n_cut;
        mine[${n_classes + 2}] = rounds;
        mine[${n_classes + 3}] = decreasing;
% if given:
        mine[${n_classes + 4}] = runs_decrease;
        mine[${n_classes + 5}] = most_rounds;
% endif
    }
% else:
    for (ulong number = begin + me; number < end; number += ${work_group}) {
        const Segment s = segment_at(RUN_ARRAYS bounds, number);
        const int class = class_of(s);
        if (class >= 0) {
            const long slot = starts[${n_classes} * (ulong)group + class] + atomic_inc(counters + class);
            lists[slot] = (I)number;
            if (class >= ${len(bins)})
                tiles[slot - starts[${len(bins)}]] = (I)((s.end - s.begin + ${tile - 1}) / ${tile});
        }
    }
% endif
}
