<%doc>
Group segments by their lengths. Step "${step}": ${{"count": "how many segments of each class each work-group has", "place": "write their numbers to the lists of the classes"}[step]}.

Classes are the segments of up to ${", ".join(str(longest) for longest in bins) or "no"} elements, and then those of more than ${tile}; ${
    "shorter ones" if not bins else "empty ones"} are in none.

Source        the bins of Hou et al., "Fast segmented sort on GPUs", by powers of two
Index space   any number of work-groups, the same in both steps; each has a chunk of adjacent segments
Inputs        bounds: n_segments + 1, unchecked${"; segment_ptr: the runs of each segment, unchecked" if given else ""}
Output        count: found[row * groups + group]; the first ${n_classes} rows count the segments of each class. Then tiles of segments
              of the last class; the most rounds that one of them takes; segments whose bounds decrease; bounds[0] and
              bounds[n_segments], from group 0 alone. place: lists, one behind the other, where starts is the exclusive scan of the
              first ${n_classes} rows; tiles[i], the tiles of the i-th segment of the last list
Local memory  a counter a class; count: work_group * sizeof(long)
Result        count: exact. place: the order within a list is not determined
</%doc>
#include "segment_runs.cl"
% if step == "count":
#include "group.cl"
% endif

int class_of(const long length)
{
% for i, longest in enumerate(bins):
    if (length <= ${longest})
        return ${"length > 0 ? 0 : -1" if i == 0 else i};
% endfor
% if not bins:
    if (length <= ${tile})
        return -1;
% endif
    return ${n_classes - 1};
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_segments, RUN_PARAMETERS global const I *restrict bounds,
% if step == "count":
    global long *restrict found)
% else:
    global const long *restrict starts, global I *restrict lists, global I *restrict tiles)
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
    long n_tiles = 0, most_rounds = 0, decreasing = 0;
% endif
    for (ulong number = begin + me; number < end; number += ${work_group}) {
        const long length = (long)bounds[number + 1] - bounds[number];
        const int class = class_of(length);
% if step == "count":
        decreasing += length < 0;
        if (class >= 0)
            atomic_inc(counters + class);
        if (class == ${n_classes - 1}) {
            n_tiles += (length + ${tile - 1}) / ${tile};
            most_rounds = max(most_rounds, (long)segment_at(RUN_ARRAYS bounds, number).rounds);
        }
% else:
        if (class >= 0) {
            const long slot = starts[(ulong)class * groups + group] + atomic_inc(counters + class);
            lists[slot] = (I)number;
            if (class == ${n_classes - 1})
                tiles[slot - starts[${n_classes - 1} * (ulong)groups]] = (I)((length + ${tile - 1}) / ${tile});
        }
% endif
    }
% if step == "count":
    local long box[${work_group}];
    n_tiles = group_reduce_add(box, n_tiles);
    most_rounds = -group_reduce_min(box, -most_rounds);
    decreasing = group_reduce_add(box, decreasing);
    for (uint i = me; i < ${n_classes}; i += ${work_group})
        found[(ulong)i * groups + group] = counters[i];
    if (me == 0) {
        global long *more = found + ${n_classes} * (ulong)groups + group;
        more[0] = n_tiles;
        more[groups] = most_rounds;
        more[2 * groups] = decreasing;
        more[3 * groups] = group == 0 ? bounds[0] : 0;
        more[4 * groups] = group == 0 ? bounds[n_segments] : 0;
    }
% endif
}
