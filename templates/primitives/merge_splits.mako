<%doc>
The splits of tiles in one round of a segmented merge. A tile begins within the merge of a pair of runs: split[tile] is the
position of the first element of the pair's first run that is not among the outputs before the tile.

Source        Ji et al., Algorithm 2, lines 9-15 (merge path: Green, McColl and Bader)
Index space   a work-item for each tile
Inputs        tile_segment, tile_first, if `has_runs` tile_run: of segment_tiles.mako; given runs are read from x in the first
              round of their segment, all other runs from source
Local memory  none
Result        exact
</%doc>
#include "merge_path.cl"
#include "segment_runs.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_tiles, const uint round, const uint n_rounds, global const I *restrict tile_segment,
    global const I *restrict tile_first, RUN_PARAMETERS global const I *restrict bounds,
% if has_runs:
    global const I *restrict tile_run, global const K *restrict x_keys,
% endif
    global const K *restrict source_keys, global I *restrict split)
{
    const ulong tile = get_global_id(0);
    if (tile >= n_tiles)
        return;
    const Segment s = segment_at(RUN_ARRAYS bounds, tile_segment[tile]);
    const int step = step_in(s, round, n_rounds);
    if (step < 0)
        return;
    const long number = (long)tile - tile_first[tile], begin = s.begin + number * TILE;
% if has_runs:
    const Pair p = pair_of(RUN_ARRAYS s, tile_run[tile], step);
    global const K *keys = step == 0 && !s.cut ? x_keys : source_keys;
% else:
    const Pair p = pair_of(RUN_ARRAYS s, number, step);
    global const K *keys = source_keys;
% endif
    split[tile] = (I)(p.begin + merge_path_global(keys + p.begin, p.middle - p.begin, keys + p.middle, p.end - p.middle, begin - p.begin));
}
