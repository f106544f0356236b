// Tiles of the path of a matrix's rows and entries (merge-based SpMV: Merrill and Garland, SC 2016).
// Row r stands on the path of rows and entries at starts[r] + r, behind the entries of the rows before it, before its own ones.
// A tile is a stretch of the path of rows and entries, as long as any other tile however long rows are.
//
// path_rows(box, starts, n_rows, begin, end, &first, &behind): the number of rows on the path before `begin`, and before `end`.
//     SEARCHERS work-items search for the number of rows before `begin`, as many for that before `end`, at evenly spaced rows.
//     The box of path_rows holds two numbers for each step of the search.
// path_spread(any_long, bounds, n_heads, rows): rows[e] becomes the number of rows that begin in the tile at or before entry e.
//     Row r of the n_heads rows of the tile (row 0: the row before them) has the entries from bounds[r] up to bounds[r + 1].
//     *any_long has to be 0 before path_spread, which makes it 1 if a row of the tile is long, and ends with a barrier.
//
// path_rows and path_spread have barriers, so the whole work-group has to call them. WORK_GROUP is a power of two.
// Loops that hold a barrier have a trip count that the compiler knows (quirk 4).
#if !defined(WORK_GROUP) || !defined(SEARCHERS) || !defined(SEARCH_STEPS)
    #error "path_tile.cl needs WORK_GROUP, SEARCHERS: work-items to a search, and SEARCH_STEPS"
#endif
void path_rows(
    local uint *box, global const I *starts, const I n_rows, const ulong begin, const ulong end, I *first, I *behind)
{
    const uint side = get_local_id(0) / SEARCHERS, lane = get_local_id(0) - side * SEARCHERS;
    const ulong target = side == 0 ? begin : end;
    // Rows below `low` are known to stand before the target on the path of rows and entries, rows from `high` on not to.
    I low_0 = 0, high_0 = n_rows, low_1 = 0, high_1 = n_rows;
    for (uint step = 0; step < SEARCH_STEPS; ++step) {
        const I width_0 = (high_0 - low_0) / SEARCHERS + 1, width_1 = (high_1 - low_1) / SEARCHERS + 1;
        if (side < 2) {
            const ulong low = side == 0 ? low_0 : low_1, high = side == 0 ? high_0 : high_1;
            const ulong width = side == 0 ? width_0 : width_1, row = low + (lane + 1) * width - 1, next = row + width;
            const bool is_before = row < high && (ulong)starts[row] + row < target;
            const bool is_next = lane + 1 < SEARCHERS && next < high && (ulong)starts[next] + next < target;
            // At most one work-item of each search has found the last row that stands before the target on the path.
            if (is_before ? !is_next : lane == 0)
                box[2 * step + side] = is_before ? lane + 1 : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        low_0 += (I)box[2 * step] * width_0;
        low_1 += (I)box[2 * step + 1] * width_1;
        high_0 = min(high_0, low_0 + width_0 - 1);
        high_1 = min(high_1, low_1 + width_1 - 1);
    }
    *first = low_0;
    *behind = low_1;
}

// Base-2 logarithm of the most work-items that write the row number of one row's entries in path_spread.
#define TEAM_BITS (WORK_GROUP < 32 ? 2 : 5)
// Least mean number of entries of the rows of a tile for which path_spread gives a row more than one work-item.
#define TEAM_ENTRIES 8
// Most entries of one row that a work-item of path_spread writes before 1 << TEAM_BITS work-items write the rest of the row.
#define SHORT 32

void path_spread(local uint *any_long, local const ushort *bounds, const uint n_heads, local ushort *rows)
{
    const uint me = get_local_id(0), mean = bounds[n_heads + 1] / (n_heads + 1);
    // A row of the tile gets about as many work-items as the rows of the tile have entries on average.
    const uint bits = mean < TEAM_ENTRIES ? 0 : min((uint)TEAM_BITS, 31 - (uint)clz(mean)), step = 1 << bits;
    for (uint row = me >> bits; row <= n_heads; row += WORK_GROUP >> bits) {
        const uint begin = bounds[row], end = bounds[row + 1], short_end = min(end, begin + (SHORT << bits));
        for (uint entry = begin + (me & (step - 1)); entry < short_end; entry += step)
            rows[entry] = (ushort)row;
        if (short_end < end)
            *any_long = 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (*any_long) {
        for (uint row = me >> TEAM_BITS; row <= n_heads; row += WORK_GROUP >> TEAM_BITS) {
            const uint begin = bounds[row] + (SHORT << bits) + (me & ((1 << TEAM_BITS) - 1)), end = bounds[row + 1];
            for (uint entry = begin; entry < end; entry += 1 << TEAM_BITS)
                rows[entry] = (ushort)row;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
