<%doc>
What is to be done with the segments of each class, from how many there are: where the classes' lists begin, and which work-groups
of a kernel that sorts several classes take which. Nothing is, if the bounds are not valid.

Index space   one work-group
Inputs        found: of segment_classes.mako, from n_groups work-groups; bounds: n_segments + 1
Output        starts[${n_classes} * group + class]: the exclusive scan of the counts of segments, class by class and group by group within a
              class. plan: ${n_totals} entries, the sums of the rows of found (the maxima of those that tell rounds), then bounds[0],
              bounds[n_segments], segment_ptr[0], segment_ptr[n_segments], run_ptr[0] and run_ptr[n_runs] (0 without runs); from
              entry ${lists_at} on where the list of each class begins, and all end; from entry ${groups_at} on the first work-group of each bin,
              where bins up to ${first_bins} are one kernel's and the others another's
Local memory  a long for each row
Result        exact
</%doc>
#include "segment_runs.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_segments, const ulong n_elements, const ulong n_groups,${" const ulong n_runs," if given else ""} RUN_PARAMETERS
    global const I *restrict bounds, global const long *restrict found, global long *restrict starts, global long *restrict plan)
{
    local long totals[${n_rows}];
    for (uint row = get_local_id(0); row < ${n_rows}; row += ${work_group}) {
        long total = 0;
        for (ulong group = 0; group < n_groups; ++group) {
            const long x = found[${n_rows} * group + row];
            total = ${" || ".join(f"row == {row}" for row in maxima)} ? max(total, x) : total + x;
        }
        totals[row] = total;
        plan[row] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const long first = bounds[0], last = bounds[n_segments];
    const bool valid = totals[${n_classes + 3}] == 0 && first == 0 && last == (long)n_elements${f" && totals[{n_classes + 4}] == 0" if given else ""};
    for (uint class = get_local_id(0); class < ${n_classes}; class += ${work_group}) {
        long before = 0;
        for (uint i = 0; i < class; ++i)
            before += totals[i];
        plan[${lists_at} + class] = valid ? before : 0;
        for (ulong group = 0; group < n_groups; ++group) {
            starts[${n_classes} * group + class] = before;
            before += found[${n_rows} * group + class];
        }
        if (class == ${n_classes - 1})
            plan[${lists_at + n_classes}] = valid ? before : 0;
    }
    if (get_local_id(0) == 0) {
        plan[${n_rows}] = first;
        plan[${n_rows + 1}] = last;
        plan[${n_rows + 2}] = ${"segment_ptr[0]" if given else 0};
        plan[${n_rows + 3}] = ${"segment_ptr[n_segments]" if given else 0};
        plan[${n_rows + 4}] = ${"run_ptr[0]" if given else 0};
        plan[${n_rows + 5}] = ${"run_ptr[n_runs]" if given else 0};
% if teams:
        long groups = 0;
% for i, at_once in enumerate(teams):
        plan[${groups_at + i}] = ${0 if i == first_bins else "groups"};
        groups = plan[${groups_at + i}] + (totals[${i}] + ${at_once - 1}) / ${at_once};
% endfor
% endif
    }
}
