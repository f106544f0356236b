<%doc>
Make one sorted run of each range of elements. A work-item merges the runs of a range bottom-up, from array to array. Ranges
"segments": whole segments of at most `longest` elements; "tiles": tiles of segments that are cut. Runs are given and sorted
(`given_runs`), or pieces of `block` elements, which are sorted by insertion first.

Source        Ji et al., Section 3.2; merge sort
Index space   "segments": n_parts work-items, among which the segments are divided by their first elements, into shares of about
              as many elements; "tiles": a work-item for each tile from first_part up to n_parts
Inputs        x; spare: as long; given runs as in segment_runs.cl
Output        target; spare has the tiles of segments that take an odd number of merge rounds afterwards
Local memory  none
Result        stable, so deterministic
</%doc>
#include "segment_runs.cl"
#include "merge_serial.cl"

% if given_runs:
#define RUN_ARGUMENTS global const I *run_ptr, const long first_run,
#define RUN_BEGIN(run) run_ptr[first_run + min(run, n_runs)]
% else:
#define RUN_ARGUMENTS
#define RUN_BEGIN(run) min(begin + (run) * ${block}, end)

void sort_by_insertion(CONST_ELEMENTS(x), ELEMENTS(target), const long begin, const long end)
{
    for (long k = begin; k < end; ++k) {
        const K key = x_keys[k];
% if value_bytes:
        const V value = x_values[k];
% endif
        long to = k;
        for (; to > begin && key < target_keys[to - 1]; --to)
            MOVE(target, to, target, to - 1)
        target_keys[to] = key;
% if value_bytes:
        target_values[to] = value;
% endif
    }
}
% endif

void merge_runs(
    RUN_ARGUMENTS const long n_runs, const long begin, const long end, CONST_ELEMENTS(x), ELEMENTS(target), ELEMENTS(spare))
{
    const uint rounds = rounds_of(n_runs);
    // A merge round moves all elements to the other of two arrays: the first array is chosen so that the last one is `target`.
% if given_runs:
    if (rounds == 0)
        for (long k = begin; k < end; ++k)
            MOVE(target, k, x, k)
% else:
    for (long run = 0; run < n_runs; ++run)
        if (rounds % 2)
            sort_by_insertion(ARRAYS(x), ARRAYS(spare), RUN_BEGIN(run), RUN_BEGIN(run + 1));
        else
            sort_by_insertion(ARRAYS(x), ARRAYS(target), RUN_BEGIN(run), RUN_BEGIN(run + 1));
% endif
    for (uint round = 0; round < rounds; ++round) {
        const long width = (long)1 << round;
        const bool to_target = (rounds - round) % 2;
        for (long run = 0; run < n_runs; run += 2 * width) {
            const long a = RUN_BEGIN(run), b = RUN_BEGIN(run + width), last = RUN_BEGIN(run + 2 * width);
% if given_runs:
            if (round == 0 && to_target)
                merge_serial(ARRAYS(x), a, b, b, last, ARRAYS(target), a, last);
            else if (round == 0)
                merge_serial(ARRAYS(x), a, b, b, last, ARRAYS(spare), a, last);
            else
% endif
            if (to_target)
                merge_serial(ARRAYS(spare), a, b, b, last, ARRAYS(target), a, last);
            else
                merge_serial(ARRAYS(target), a, b, b, last, ARRAYS(spare), a, last);
        }
    }
}

% if ranges == "segments":
// The index of the first segment that begins at or behind a position in the array of elements.
long first_behind(global const I *bounds, const long n_segments, const long position)
{
    long low = 0, high = n_segments;
    while (low < high) {
        const long middle = low + (high - low) / 2;
        if (bounds[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_parts,
% if ranges == "segments":
    const long n_segments, const long longest,
% else:
    const ulong first_part, global const I *restrict tile_segment, global const I *restrict tile_first,
% endif
    RUN_PARAMETERS global const I *restrict bounds, CONST_ELEMENTS(x), ELEMENTS(target), ELEMENTS(spare))
{
    const ulong part = ${"first_part + " if ranges == "tiles" else ""}get_global_id(0);
    if (part >= n_parts)
        return;
% if ranges == "segments":
    const long per_part = (bounds[n_segments] + (long)n_parts - 1) / (long)n_parts, from = (long)part * per_part;
    const long last = part + 1 == n_parts ? n_segments : first_behind(bounds, n_segments, from + per_part);
    for (long number = first_behind(bounds, n_segments, from); number < last; ++number) {
        const long begin = bounds[number], end = bounds[number + 1];
        if (begin == end || end - begin > longest)
            continue;
% if given_runs:
        const long first_run = segment_ptr[number], n_runs = segment_ptr[number + 1] - first_run;
        merge_runs(run_ptr, first_run, n_runs, begin, end, ARRAYS(x), ARRAYS(target), ARRAYS(spare));
% else:
        merge_runs((end - begin + ${block - 1}) / ${block}, begin, end, ARRAYS(x), ARRAYS(target), ARRAYS(spare));
% endif
    }
% else:
    const Segment s = segment_at(RUN_ARRAYS bounds, tile_segment[part]);
    const long begin = s.begin + (long)(part - tile_first[part]) * TILE, end = min(begin + TILE, s.end);
    const long n_runs = (end - begin + ${block - 1}) / ${block};
    if (s.rounds % 2)
        merge_runs(n_runs, begin, end, ARRAYS(x), ARRAYS(spare), ARRAYS(target));
    else
        merge_runs(n_runs, begin, end, ARRAYS(x), ARRAYS(target), ARRAYS(spare));
% endif
}
