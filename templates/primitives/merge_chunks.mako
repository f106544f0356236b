<%doc>
One round of a segmented merge, for CPU devices: each pair of runs of each segment that takes part becomes one run. Each work-item
merges the `tile` elements of a tile in global memory.

Source        Ji et al., Algorithm 2, lines 16-18
Index space   a work-item for each tile
Inputs        as merge_tiles.mako
Local memory  none
Result        stable, so deterministic
</%doc>
#include "segment_runs.cl"
#include "merge_serial.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint round, const uint n_rounds, const ulong n_tiles, global const I *restrict tile_segment,
    global const I *restrict tile_first, RUN_PARAMETERS global const I *restrict bounds,
% if has_runs:
    global const I *restrict tile_run, CONST_ELEMENTS(x),
% endif
    CONST_ELEMENTS(source), global const I *restrict split, ELEMENTS(target))
{
    const ulong tile = get_global_id(0);
    if (tile >= n_tiles)
        return;
    const Segment s = segment_at(RUN_ARRAYS bounds, tile_segment[tile]);
    const int step = step_in(s, round, n_rounds);
    if (step < 0)
        return;
    const long number = (long)tile - tile_first[tile], begin = s.begin + number * TILE, end = min(begin + TILE, s.end);
    long run = ${"tile_run[tile]" if has_runs else "number"}, a = split[tile];
    for (long to = begin; to < end;) {
        const Pair p = pair_of(RUN_ARRAYS s, run, step);
        const long to_end = min(p.end, end), b = p.middle + (to - a);
% if has_runs:
        if (step == 0 && !s.cut)
            merge_serial(ARRAYS(x), a, p.middle, b, p.end, ARRAYS(target), to, to_end);
        else
% endif
            merge_serial(ARRAYS(source), a, p.middle, b, p.end, ARRAYS(target), to, to_end);
        to = a = to_end;
        // `run` becomes the run in whose range of positions the next output element lies: a run of the pair that is merged next.
        while (run + 1 < s.n_runs && run_begin(RUN_ARRAYS s, run + 1) <= to)
            ++run;
    }
}
