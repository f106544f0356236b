<%doc>
Group segments by their lengths. Step "count": the number of segments of each class in each work-group's chunk, and whether the
pointers are valid. Step "place": write the indices of segments to the lists of the classes, and the plan for later kernels, which
has no segments if the pointers are not valid.

Classes are, for each of `bins`, the segments of up to that number of elements; then, with `has_runs`, segments of more than
`tile` elements whose runs are merged; then segments of more than `tile` elements that are cut into tiles. Empty segments are in
no class; without bins, segments of up to `tile` elements are in none either.

Source        the bins of Hou et al., "Fast segmented sort on GPUs", by powers of two
Index space   any number of work-groups, the same in both steps; each has a chunk of adjacent segments; step "count"
              strides over given runs
Inputs        bounds: n_segments + 1, unchecked; with given runs segment_ptr: n_segments + 1; run_ptr: n_runs + 1; both unchecked
Output        count: report[`n_rows` * group + row]; the first `n_classes` rows count the segments of each class, the next row the
              tiles of the last class but one (0 without given runs), the next the tiles of the last class. Then the most rounds
              of these segments; how often bounds decrease, or with given runs: how often segment_ptr decreases; how often run_ptr
              decreases; the most rounds of any segment; and bounds are written. place: lists, class by class; tiles[i], the
              number of tiles of segment i of those of more than `tile` elements. plan: `n_rows` sums of the rows of report
              (maxima of rows of rounds), then bounds[0], bounds[n_segments], segment_ptr[0], segment_ptr[n_segments], run_ptr[0]
              and run_ptr[n_runs] (0 without runs); from entry `lists_at` on the beginnings of the lists, and the end; from entry
              `groups_at` on the first work-group of each bin, where a kernel sorts bins up to `first_bins`, and another the rest
Local memory  two counters a class and work_group * sizeof(long); place: twice that
Result        exact, but that the order within a list is not determined
</%doc>
#include "segment_runs.cl"
#include "group.cl"
#if WORK_GROUP == 1
    #define NEXT(counter) ((*(counter))++)
#else
    #define NEXT(counter) atomic_inc(counter)
#endif
<% at = {label: n_classes + i for i, label in enumerate(totals)} %>\

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
    return ${f"s.cut ? {n_classes - 1} : {n_classes - 2}" if has_runs else n_classes - 1};
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if step == "count":
    const ulong n_segments,${" const long n_runs," if has_runs else ""} RUN_PARAMETERS global ${"I" if has_runs else "const I"} *restrict bounds,
    global long *restrict report)
% else:
    const ulong n_segments, const ulong n_elements,${" const long n_runs," if has_runs else ""} RUN_PARAMETERS global const I *restrict bounds,
    global const long *restrict report, global I *restrict lists, global I *restrict tiles, global long *restrict plan)
% endif
{
    SHARED uint counters[${n_classes}];
    const uint me = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    const ulong per_group = (n_segments + groups - 1) / groups;
    const ulong begin = min(group * per_group, n_segments), end = min(begin + per_group, n_segments);
    for (uint i = me; i < ${n_classes}; i += ${work_group})
        counters[i] = 0;
% if step == "count":
    GROUP_BARRIER
    long merged_tiles = 0, cut_tiles = 0, rounds = 0, decreasing = 0;
% if has_runs:
    long runs_decrease = 0, max_rounds = 0;
    for (long run = get_global_id(0); run < n_runs; run += get_global_size(0))
        runs_decrease += run_ptr[run + 1] < run_ptr[run];
    if (get_global_id(0) == 0)
        bounds[n_segments] = run_ptr[clamp((long)segment_ptr[n_segments], (long)0, n_runs)];
% endif
    for (ulong number = begin + me; number < end; number += ${work_group}) {
% if has_runs:
        const long first = segment_ptr[number], last = segment_ptr[number + 1];
        const long from = run_ptr[clamp(first, (long)0, n_runs)], to = run_ptr[clamp(last, (long)0, n_runs)];
        bounds[number] = (I)from;
        decreasing += last < first;
        max_rounds = max(max_rounds, (long)rounds_of(last - first));
        const Segment s = segment_between(from, to, first, last - first);
% else:
        const Segment s = segment_at(bounds, number);
        decreasing += s.end < s.begin;
% endif
        const int class = class_of(s);
        if (class >= 0)
            NEXT(counters + class);
        if (class >= ${len(bins)}) {
            const long n_tiles = (s.end - s.begin + ${tile - 1}) / ${tile};
            if (s.cut)
                cut_tiles += n_tiles;
            else
                merged_tiles += n_tiles;
            rounds = max(rounds, (long)s.rounds);
        }
    }
    SHARED long box[${work_group}];
    merged_tiles = group_reduce_add(box, merged_tiles);
    cut_tiles = group_reduce_add(box, cut_tiles);
    rounds = -group_reduce_min(box, -rounds);
    decreasing = group_reduce_add(box, decreasing);
% if has_runs:
    runs_decrease = group_reduce_add(box, runs_decrease);
    max_rounds = -group_reduce_min(box, -max_rounds);
% endif
    global long *group_report = report + ${n_rows} * (ulong)group;
    for (uint i = me; i < ${n_classes}; i += ${work_group})
        group_report[i] = counters[i];
    if (me == 0) {
% for label in totals:
        group_report[${at[label]}] = ${label};
% endfor
    }
% else:
    // The segments of each length class in all, and in earlier work-groups: a work-item adds up some of a class's counts.
    SHARED long class_totals[${columns * n_classes}], before[${columns * n_classes}], starts[${n_classes + 1}];
    for (uint i = me; i < ${columns * n_classes}; i += ${work_group}) {
        long sum = 0, sum_before = 0;
        for (uint from = i / ${n_classes}; from < groups; from += ${columns}) {
            const long x = report[${n_rows} * (ulong)from + i % ${n_classes}];
            sum += x;
            sum_before += from < group ? x : 0;
        }
        class_totals[i] = sum;
        before[i] = sum_before;
    }
    GROUP_BARRIER
    for (uint class = me; class < ${n_classes}; class += ${work_group})
        for (uint i = 1; i < ${columns}; ++i) {
            class_totals[class] += class_totals[i * ${n_classes} + class];
            before[class] += before[i * ${n_classes} + class];
        }
    GROUP_BARRIER
    if (me == 0) {
        starts[0] = 0;
        for (uint class = 0; class < ${n_classes}; ++class)
            starts[class + 1] = starts[class] + class_totals[class];
    }
    GROUP_BARRIER
    for (ulong number = begin + me; number < end; number += ${work_group}) {
        const Segment s = segment_at(RUN_ARRAYS bounds, number);
        const int class = class_of(s);
        if (class >= 0) {
            const long slot = starts[class] + before[class] + NEXT(counters + class);
            lists[slot] = (I)number;
            if (class >= ${len(bins)})
                tiles[slot - starts[${len(bins)}]] = (I)((s.end - s.begin + ${tile - 1}) / ${tile});
        }
    }
    if (group > 0)
        return;
    for (uint row = ${n_classes} + me; row < ${n_rows}; row += ${work_group}) {
        long total = 0;
        for (uint from = 0; from < groups; ++from) {
            const long x = report[${n_rows} * (ulong)from + row];
            total = ${" || ".join(f"row == {at[label]}" for label in maxima)} ? max(total, x) : total + x;
        }
        plan[row] = total;
    }
    if (me == 0) {
        long decreasing = 0;
        for (uint from = 0; from < groups; ++from)
            decreasing += report[${n_rows} * (ulong)from + ${at["decreasing"]}]${f' + report[{n_rows} * (ulong)from + {at["runs_decrease"]}]' if has_runs else ""};
        const long first = bounds[0], last = bounds[n_segments];
        const bool valid = decreasing == 0 && first == 0 && last == (long)n_elements;
        plan[${n_rows}] = first;
        plan[${n_rows + 1}] = last;
        plan[${n_rows + 2}] = ${"segment_ptr[0]" if has_runs else 0};
        plan[${n_rows + 3}] = ${"segment_ptr[n_segments]" if has_runs else 0};
        plan[${n_rows + 4}] = ${"run_ptr[0]" if has_runs else 0};
        plan[${n_rows + 5}] = ${"run_ptr[n_runs]" if has_runs else 0};
        for (uint class = 0; class < ${n_classes}; ++class) {
            plan[class] = class_totals[class];
            plan[${lists_at} + class] = valid ? starts[class] : 0;
        }
        plan[${lists_at + n_classes}] = valid ? starts[${n_classes}] : 0;
% if teams:
        long first_group = 0;
% for i, at_once in enumerate(teams):
        plan[${groups_at + i}] = ${"first_group = 0" if i == first_bins else "first_group"};
        first_group += (class_totals[${i}] + ${at_once - 1}) / ${at_once};
% endfor
% endif
    }
% endif
}
