<%doc>
A list of the products of C = A @ B in the order of C's entries, and of A's row within an entry: the positions of each product's
factors in A and B. Phase "lengths": the number of products of each entry of A. Phase "places": the entry of C of each product. A
scan follows the first phase, a stable sort the second. Phase "tiles": tiles of entries of C. Phase "factors": the list, tile by
tile.

A tile has the entries whose first products lie in a window of `window` products. Positions in A count from the beginning of the
tile's first row on.

Source        own; the segments of a merge path SpMV over products
Index space   a work-item to an entry of A; a work-group to `work_group * items` products; a work-item to a tile; a work-group to
              a tile
Inputs        A, B and C in canonical format, all entries of C with a product; entry_products: a scan of the lengths, one more
              than entries of A. numbers: numbers of the products, sorted by their entries of C; first: the first product of each
              entry of C, and the number of all
Output        widest: the longest range of A's entries that a tile is of
Local memory  2 numbers of 32 bits in the phase "places"
Result        exact
</%doc>
% if phase in ("places", "factors"):
// Return the entry of A that a product belongs to: the last one from `low` on whose products begin at or before it.
uint entry_of(global const int *restrict entry_products, uint low, uint high, const uint product)
{
    while (low + 1 < high) {
        const uint middle = low + (high - low) / 2;
        if ((uint)entry_products[middle] <= product)
            low = middle;
        else
            high = middle;
    }
    return low;
}
% endif
% if phase in ("places", "tiles"):
// Define a function that returns the row of an entry of A or C: the last row that begins at or before the entry.
#define DEFINE_ROW_OF(NAME, TYPE) \
    ulong NAME(global const TYPE *restrict indptr, const ulong n_rows, const TYPE entry) \
    { \
        ulong low = 0; \
        for (ulong high = n_rows; low + 1 < high;) { \
            const ulong middle = (low + high) / 2; \
            if (indptr[middle] <= entry) \
                low = middle; \
            else \
                high = middle; \
        } \
        return low; \
    }
DEFINE_ROW_OF(${"row_of_a, I" if phase == "places" else "row_of_c, C_INDEX"})
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
% if phase == "lengths":
void ${name}(const uint n, global const I *restrict a_indices, global const I *restrict b_indptr, global int *restrict lengths)
{
    const uint entry = get_global_id(0);
    if (entry < n)
        lengths[entry] = (int)(b_indptr[a_indices[entry] + 1] - b_indptr[a_indices[entry]]);
}
% elif phase == "places":
void ${name}(
    const uint n, const uint n_entries, const ulong n_rows, global const int *restrict entry_products,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const I *restrict b_indptr,
    global const I *restrict b_indices, global const C_INDEX *restrict c_indptr, global const C_INDEX *restrict c_indices,
    global int *restrict places)
{
    local uint entry_range[2];
    const uint me = get_local_id(0), begin = (uint)get_group_id(0) * ${work_group * items};
    for (uint i = me; i < 2; i += ${work_group})
        entry_range[i] = entry_of(entry_products, 0, n_entries, min(begin + i * ${work_group * items - 1}, n - 1));
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint low = entry_range[0], high = entry_range[1] + 1;
    for (uint u = 0; u < ${items}; ++u) {
        const uint product = begin + u * ${work_group} + me;
        if (product >= n)
            continue;
        const uint entry = entry_of(entry_products, low, high, product);
        const ulong row = row_of_a(a_indptr, n_rows, (I)entry);
        const COLUMN column = (COLUMN)b_indices[b_indptr[a_indices[entry]] + (I)(product - (uint)entry_products[entry])];
        C_INDEX place = c_indptr[row];
        for (C_INDEX above = c_indptr[row + 1]; place + 1 < above;) {
            const C_INDEX middle = place + (above - place) / 2;
            if ((COLUMN)c_indices[middle] <= column)
                place = middle;
            else
                above = middle;
        }
        places[product] = (int)place;
    }
}
% elif phase == "tiles":
void ${name}(
    const uint n_tiles, const uint window, const uint n_entries, const ulong n_rows, global const int *restrict first,
    global const I *restrict a_indptr, global const C_INDEX *restrict c_indptr,
    global uint *restrict tile_entries, global uint *restrict tile_products, global uint *restrict tile_bases,
    global uint *restrict widest)
{
    const uint tile = get_global_id(0);
    if (tile > n_tiles)
        return;
    // Find the first entries of C whose products begin in this tile's window (range of products), or the next's, or later.
    uint begin = 0, end = 0;
    for (uint step = 1u << (31 - clz(n_entries)); step; step /= 2) {
        if (begin + step <= n_entries && (ulong)first[begin + step - 1] < (ulong)tile * window)
            begin += step;
        if (end + step <= n_entries && (ulong)first[end + step - 1] < (ulong)(tile + 1) * window)
            end += step;
    }
    tile_entries[tile] = begin;
    tile_products[tile] = (uint)first[begin];
    if (tile == n_tiles || begin == end)
        return;
    const I base = a_indptr[row_of_c(c_indptr, n_rows, (C_INDEX)begin)];
    tile_bases[tile] = (uint)base;
    atomic_max(widest, (uint)(a_indptr[row_of_c(c_indptr, n_rows, (C_INDEX)(end - 1)) + 1] - base));
}
% else:
void ${name}(
    const uint n_entries, global const int *restrict entry_products, global const I *restrict a_indices,
    global const I *restrict b_indptr, global const int *restrict numbers, global const int *restrict first,
    global const uint *restrict tile_entries, global const uint *restrict tile_products, global const uint *restrict tile_bases,
    global ${place} *restrict a_places, global uint *restrict b_places, global ushort *restrict begins)
{
    const uint me = get_local_id(0), tile = get_group_id(0);
    const uint begin = tile_products[tile], end = tile_products[tile + 1];
    for (uint i = begin + me; i < end; i += ${work_group}) {
        const uint number = (uint)numbers[i], entry = entry_of(entry_products, 0, n_entries, number);
        a_places[i] = (${place})(entry - tile_bases[tile]);
        b_places[i] = (uint)(b_indptr[a_indices[entry]] + (I)(number - (uint)entry_products[entry]));
    }
    for (uint entry = tile_entries[tile] + me; entry < tile_entries[tile + 1]; entry += ${work_group})
        begins[entry] = (ushort)((uint)first[entry] - begin);
}
% endif
