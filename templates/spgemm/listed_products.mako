<%doc>
Values of C by a list of products in the order of C's entries, see product_list.mako: a work-group multiplies the factors of a
tile's products, and a work-item adds up the products of an entry.

Only the last entry of a tile may have more products than local memory holds: all work-items add up parts of these products.

Source        own; as CSR-stream does SpMV (Greathouse and Daga, 2014)
Index space   a work-group to a tile
Inputs        tile_entries, tile_products: which entry and which product each tile begins with, one more than tiles; where
              the factors stand: a_places, from tile_bases[tile] on, and b_places; begins: the first product of an entry
              within its tile
Local memory  `work_group * (items + 1)` values
Result        deterministic: the products of an entry are added in the order of A's row, those of a long one in parts
</%doc>
#define PRODUCT(i) MULTIPLY(from_a(a_data[base + a_places[begin + (i)]]), from_x(b_data[b_places[begin + (i)]]))

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const uint *restrict tile_entries, global const uint *restrict tile_products, global const uint *restrict tile_bases,
    global const ${place} *restrict a_places, global const uint *restrict b_places, global const ushort *restrict begins,
    global const A_VALUE *restrict a_data, global const X_VALUE *restrict b_data, global T *restrict c_data)
{
    local T terms[${work_group * items}], parts[${work_group}];
    const uint me = get_local_id(0), tile = get_group_id(0);
    const uint first_entry = tile_entries[tile], end = tile_entries[tile + 1];
    if (first_entry == end)
        return;
    const uint begin = tile_products[tile], n_products = tile_products[tile + 1] - begin, base = tile_bases[tile];
    const bool over = n_products > ${work_group * items};
    const uint n = over ? begins[end - 1] : n_products, n_entries = end - first_entry - over;
    // All loads of positions in A and B, and then all loads of factors, are in flight before the first one is used.
% for u in range(items):
    const uint i_${u} = me + ${u * work_group};
    uint a_${u} = base, b_${u} = 0;
    if (i_${u} < n) {
        a_${u} += a_places[begin + i_${u}];
        b_${u} = b_places[begin + i_${u}];
    }
% endfor
% for u in range(items):
    if (i_${u} < n)
        terms[i_${u}] = MULTIPLY(from_a(a_data[a_${u}]), from_x(b_data[b_${u}]));
% endfor
    const uint share = over ? (n_products - n + ${work_group - 1}) / ${work_group} : 0;
    if (over) {
        const uint from = min(n + me * share, n_products), to = min(from + share, n_products);
        if (from < to)
            parts[me] = PRODUCT(from);
        for (uint i = from + 1; i < to; ++i)
            parts[me] = ADD(parts[me], PRODUCT(i));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint entry = me; entry < n_entries; entry += ${work_group}) {
        uint i = begins[first_entry + entry];
        const uint behind = entry + 1 < n_entries ? begins[first_entry + entry + 1] : n;
        T sum = terms[i];
        for (++i; i < behind; ++i)
            sum = ADD(sum, terms[i]);
        c_data[first_entry + entry] = sum;
    }
    if (over && me == 0) {
        T sum = parts[0];
        for (uint i = 1; i * share < n_products - n; ++i)
            sum = ADD(sum, parts[i]);
        c_data[end - 1] = sum;
    }
}
