<%doc>
The segment of each tile: a tile holds `tile` adjacent elements of one segment, the segment's last tile perhaps fewer.

Source        the first step of Algorithm 2 of Ji et al., "Segmented merge": work for each segment by its length, then scattered
Index space   a work-item for each tile
Inputs        tile_ptr: the first tile of each of n_listed segments, and n_tiles; listed: the indices of these segments, which are
              not empty
Output        tile_segment; tile_first: the first tile of that segment; with `has_runs` tile_run: the run that holds the tile's
              first element
Local memory  none
Result        exact
</%doc>
#include "segment_runs.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_tiles, const ulong n_listed, global const I *restrict tile_ptr, const ulong first_listed,
    global const I *restrict listed, RUN_PARAMETERS global const I *restrict bounds,
    global I *restrict tile_segment, global I *restrict tile_first${", global I *restrict tile_run" if has_runs else ""})
{
    const ulong tile = get_global_id(0);
    if (tile >= n_tiles)
        return;
    ulong low = 0, high = n_listed - 1;
    while (low < high) {
        const ulong middle = (low + high + 1) / 2;
        if ((ulong)tile_ptr[middle] <= tile)
            low = middle;
        else
            high = middle - 1;
    }
    const long number = listed[first_listed + low];
    const I first = tile_ptr[low];
    tile_segment[tile] = (I)number;
    tile_first[tile] = first;
% if has_runs:
    const Segment s = segment_at(RUN_ARRAYS bounds, number);
    const long begin = s.begin + (long)(tile - first) * TILE;
    tile_run[tile] = (I)(s.cut ? (long)(tile - first) : run_at(RUN_ARRAYS s, 0, s.n_runs - 1, begin));
% endif
}
