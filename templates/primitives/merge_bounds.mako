<%doc>
Are these pointers of a segmented merge? And bounds[s], where the elements of each segment begin. Trusts nothing but lengths.

Index space   any number of work-groups; each strides over segments and runs
Inputs        segment_ptr: n_segments + 1; run_ptr: n_runs + 1; both unchecked
Output        found[7 * group + i], to be put together over the groups: 0, 1 how often segment_ptr and run_ptr decrease; 2 the most
              rounds that a segment takes; from group 0 alone 3, 4 the first and the last of segment_ptr, 5, 6 of run_ptr
Local memory  work_group * sizeof(long)
Result        exact; bounds mean something where the pointers are valid
</%doc>
#include "segment_runs.cl"
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const long n_segments, const long n_runs, RUN_PARAMETERS global I *restrict bounds, global long *restrict found)
{
    local long box[${work_group}];
    long segments_decrease = 0, runs_decrease = 0, most_rounds = 0;
    for (long number = get_global_id(0); number <= n_segments; number += get_global_size(0)) {
        const long run = segment_ptr[number];
        bounds[number] = run_ptr[clamp(run, (long)0, n_runs)];
        if (number < n_segments) {
            segments_decrease += segment_ptr[number + 1] < run;
            most_rounds = max(most_rounds, (long)rounds_of(segment_ptr[number + 1] - run));
        }
    }
    for (long run = get_global_id(0); run < n_runs; run += get_global_size(0))
        runs_decrease += run_ptr[run + 1] < run_ptr[run];
    segments_decrease = group_reduce_add(box, segments_decrease);
    runs_decrease = group_reduce_add(box, runs_decrease);
    most_rounds = -group_reduce_min(box, -most_rounds);
    if (get_local_id(0) == 0) {
        global long *out = found + 7 * get_group_id(0);
        const bool tells = get_group_id(0) == 0;
        out[0] = segments_decrease;
        out[1] = runs_decrease;
        out[2] = most_rounds;
        out[3] = tells ? segment_ptr[0] : 0;
        out[4] = tells ? segment_ptr[n_segments] : 0;
        out[5] = tells ? run_ptr[0] : 0;
        out[6] = tells ? run_ptr[n_runs] : 0;
    }
}
