<%doc>
The intermediate products of a slice of rows, in the order of A's entries. "keys": the row in the slice and the column of each, as
one number. "numbered": these, and the numbers of the products. "values": their values.

Source        Dalton, Olson and Bell, Section 3.2 and Algorithm 3; work-items find their entry of A by a search of its own
Index space   a work-group to `work_group * items` products
Inputs        entry_products: n_entries + 1, where the products of each entry of A begin; entry_at, and entry_slot for keys: of
              esc_entries.mako
Local memory  2 numbers of 32 bits
Result        exact; values are the semiring's products
</%doc>

// Return the entry of A that a product belongs to: the last entry in low to high - 1 whose products begin at or before it.
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

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n, const uint n_entries, global const int *restrict entry_products, global const I *restrict entry_at,
    global const I *restrict a_indices, global const I *restrict b_indptr,
% if output == "values":
    global const A_VALUE *restrict a_data, global const X_VALUE *restrict b_data, global T *restrict values)
% else:
    const uint column_bits, global const uint *restrict entry_slot, global const I *restrict b_indices, global KEY *restrict keys\
${", global uint *restrict numbers)" if output == "numbered" else ")"}
% endif
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
        const I at = entry_at[entry];
        const I place = b_indptr[a_indices[at]] + (I)(product - (uint)entry_products[entry]);
% if output == "values":
        values[product] = MULTIPLY(from_a(a_data[at]), from_x(b_data[place]));
% else:
        keys[product] = (KEY)entry_slot[entry] << column_bits | (KEY)b_indices[place];
% if output == "numbered":
        numbers[product] = product;
% endif
% endif
    }
}
