<%doc>
Entries of C from a slice's sorted products, a work-group to a tile of `work_group * items`, whatever number of products an entry
has: the values of a tile are scanned in local memory, beginning anew where an entry does. A tile's sum of an entry that an
earlier tile began goes to partial[tile], for esc_carry.mako.

Source        Dalton, Olson and Bell, Section 3.4 and Algorithm 5: a segmented scan
Index space   a work-group to a tile
Inputs        n numbers of products in sorted order, bit 31 set where an entry of C begins; values, by number; runs_before and
              tile_first, of esc_count.mako; but for values alone, the sorted keys
Local memory  `work_group * items` values, `3 * work_group * items` bytes, and a value and a number of 32 bits to a work-item
Result        deterministic: an entry's products are always added in the same order
</%doc>
#define ITEMS ${items}
#define INCLUSIVE 1
#define SEGMENTED 1
#include "esc.cl"
#include "tile_scan.cl"
#include "group_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPGEMM_ROWS const ulong begin, const uint n, global const uint *restrict runs_before, global const uint *restrict tile_first,
    global const uint *restrict numbers, global const T *restrict values, global const C_INDEX *restrict c_indptr,
% if not values_only:
    const uint column_bits, global const KEY *restrict keys, global C_INDEX *restrict c_indices,
% endif
    global T *restrict c_data, global T *restrict partial)
{
    local T entries[${work_group * items}];
    local uchar heads[${work_group * items}];
    local ushort run_ends[${work_group * items}];
    local T box[${work_group}];
    local uint head_box[${work_group}];
    local uint n_ends;
    const uint me = get_local_id(0), tile = get_group_id(0), at = tile * ${work_group * items};
    const uint n_valid = min(n - at, ${work_group * items}u);
    // The loads of all products of a work-item are in flight before the first is used.
% for i in range(items):
    const uint number_${i} = me + ${i * work_group} < n_valid ? numbers[at + me + ${i * work_group}] : 0;
% endfor
% for i in range(items):
    const T value_${i} = me + ${i * work_group} < n_valid ? values[number_${i} & ~(1u << 31)] : ZERO;
% endfor
% for i in range(items):
    entries[me + ${i * work_group}] = value_${i};
    heads[me + ${i * work_group}] = (uchar)(number_${i} >> 31);
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    uint mine = 0;
    for (uint i = me * ITEMS; i < me * ITEMS + ITEMS; ++i)
        mine += i < n_valid && (i + 1 == n_valid || heads[i + 1]);
    uint end = group_scan_add(head_box, mine);
    for (uint i = me * ITEMS; i < me * ITEMS + ITEMS; ++i)
        if (i < n_valid && (i + 1 == n_valid || heads[i + 1]))
            run_ends[end++] = (ushort)i;
    if (me == ${work_group - 1})
        n_ends = end;
    const uint continued = !heads[0];
    tile_scan(entries, heads, box, head_box, ZERO);

    const uint first_run = tile_first[tile] - continued;
    for (uint i = me; i < n_ends; i += ${work_group}) {
        const T sum = entries[run_ends[i]];
        if (continued && i == 0) {
            partial[tile] = sum;
            continue;
        }
        const ulong place = ESC_PLACE(first_run + i);
        c_data[place] = sum;
% if not values_only:
        c_indices[place] = (C_INDEX)(keys[at + run_ends[i]] & (((KEY)1 << column_bits) - 1));
% endif
    }
}
