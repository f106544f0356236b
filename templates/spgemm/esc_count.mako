<%doc>
Of a slice whose products are sorted: which entry of the slice's C each row and each tile of products begins with; `counting`:
also the number of entries of each row of C.

Source        own
Index space   a work-item to a row or a tile, one more than there are
Inputs        products_before: a scan of the products of all rows; the slice has n_rows of them from `begin` on. places: the marks
              before each of its n products, and all, of esc_mark.mako
Output        runs_before[n_rows + 1], tile_first[n_tiles + 1]; `counting`: counts, by row
Local memory  none
Result        exact
</%doc>
#include "spgemm_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPGEMM_ROWS const ulong begin, const uint n, const uint n_tiles, const uint tile,
    global const ulong *restrict products_before, global const int *restrict places,
    global uint *restrict runs_before, global uint *restrict tile_first${", global uint *restrict counts)" if counting else ")"}
{
    const ulong i = get_global_id(0);
    if (i <= n_rows) {
        const ulong base = products_before[begin];
        const uint before = (uint)places[products_before[begin + i] - base];
        runs_before[i] = before;
% if counting:
        if (i < n_rows)
            counts[SPGEMM_ROW(begin + i)] = (uint)places[products_before[begin + i + 1] - base] - before;
% endif
    }
    if (i <= n_tiles)
        tile_first[i] = (uint)places[min(i * tile, (ulong)n)];
}
