<%doc>
Add the later tiles' parts of an entry of C to the sum of the tile in which the entry begins.

Source        own; as the carries of a segmented sum
Index space   a work-item to a tile
Inputs        of esc_contract.mako, with tiles of `tile`; partial of tiles that begin within an entry
Local memory  none
Result        deterministic: tiles are added in their order
</%doc>
#include "esc.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPGEMM_ROWS const ulong begin, const uint n_tiles, global const uint *restrict runs_before,
    global const uint *restrict tile_first, global const uint *restrict numbers, global const C_INDEX *restrict c_indptr,
    global T *restrict c_data, global const T *restrict partial)
{
    uint tile = get_global_id(0);
    // A tile of products that goes on with an entry of C begun in the tile before adds up the entry; other tiles add nothing.
    if (tile == 0 || tile >= n_tiles || numbers[(ulong)tile * ${tile}] >> 31 || tile_first[tile] == tile_first[tile - 1])
        return;
    const ulong place = ESC_PLACE(tile_first[tile] - 1);
    T sum = ADD(c_data[place], partial[tile]);
    for (; tile_first[tile + 1] == tile_first[tile] && tile + 1 < n_tiles && !(numbers[(ulong)(tile + 1) * ${tile}] >> 31); ++tile)
        sum = ADD(sum, partial[tile + 1]);
    c_data[place] = sum;
}
