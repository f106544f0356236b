<%doc>
One round of a segmented merge, in which a work-item merges a pair of runs. Only the last round moves segments of a single run.

Source        Ji et al., Algorithm 1
Index space   a work-item for each run
Inputs        segment_ptr: the first run of each of n_segments segments; run_ptr: the first elements of runs; x: the elements that
              a segment reads in its first round; source: the elements that it reads in later rounds
Local memory  none
Result        stable, so deterministic
</%doc>
#include "segment_runs.cl"
#include "merge_serial.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint round, const uint n_rounds, const ulong n_runs, const long n_segments, RUN_PARAMETERS
    CONST_ELEMENTS(x), CONST_ELEMENTS(source), ELEMENTS(target))
{
    const ulong run = get_global_id(0);
    if (run >= n_runs)
        return;
    // Bisection for the last segment that begins at or before this work-item's run.
    long low = 0, high = n_segments - 1;
    while (low < high) {
        const long middle = low + (high - low + 1) / 2;
        if ((ulong)segment_ptr[middle] <= run)
            low = middle;
        else
            high = middle - 1;
    }
    const long first = segment_ptr[low], last = segment_ptr[low + 1], of_segment = (long)run - first;
    const uint rounds = rounds_of(last - first);
    const int step = (int)round - (int)(n_rounds - max(rounds, 1u));
    if (step < 0 || of_segment & (((long)2 << step) - 1))
        return;
    const long a = run_ptr[run], b = run_ptr[min((long)run + ((long)1 << step), last)];
    const long end = run_ptr[min((long)run + ((long)2 << step), last)];
    if (step == 0)
        merge_serial(ARRAYS(x), a, b, b, end, ARRAYS(target), a, end);
    else
        merge_serial(ARRAYS(source), a, b, b, end, ARRAYS(target), a, end);
}
