<%doc>
Rows of C by a hash table of columns in local memory for each row, with linear probing; sums stand beside the columns.

The products of a row are shared out evenly over the lanes, which fetch `items` at a time into registers before they go to the
table. Symbolic: columns that were new are counted. Numeric: slots in use are listed, sorted by column (ranked: by counting
smaller ones, else bitonically), and written in that order. Values: each column of C takes its sum from the table.

Source        Liu et al., Register-Aware SpGEMM, Section 3.3
Index space   `lanes` work-items to a row, `teams` rows to a work-group
Inputs        see spgemm.cl; rows with at most `products` products and `length` entries of A; in the symbolic phase with at most
              `slots` products: else rows with more entries of C than that are left out
Local memory  for each row `slots` columns; but in the symbolic phase as many sums and numbers of 16 bits; what lanes exchange
Result        ordered: deterministic, the products of a column are added in the order of A's row, without atomics on values;
              else sums are added in any order. Columns and counts are exact
</%doc>
<%namespace name="rows" file="spgemm/hash_rows"/>\
typedef ushort PLACE;
#include "spgemm.cl"
#include "team.cl"
% if not symbolic:
#include "${"add_ordered.cl" if ordered else "add_atomic.cl"}"
% endif

// Return the slot of a column in a row's hash table; a new column is inserted, for which the table always has room.
uint insert(local uint *table, const uint last, const uint shift, const uint column, uint *n_new)
{
    for (uint slot = column * 2654435769u >> shift;; slot = (slot + 1) & last) {
        const uint occupant = atomic_cmpxchg((volatile local uint *)table + slot, NO_COLUMN, column);
        *n_new += occupant == NO_COLUMN;
        if (occupant == NO_COLUMN || occupant == column)
            return slot;
    }
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    local uint tables[${teams * slots}], counters[${teams}];
    local uint boxes[${work_group}];
    local PLACE all_places[${teams * n_places}];
% if not symbolic:
    local T all_sums[${teams * slots}];
% endif
% if ordered and not symbolic:
    local T all_terms[${work_group}];
    local ushort all_slots[${work_group}];
    local uint all_masks[${work_group} * TEAM_WORDS];
% endif
    const uint lane = get_local_id(0) % ${lanes}, team = get_local_id(0) / ${lanes};
    const ulong number = (ulong)get_group_id(0) * ${teams} + team;
    bool active = number < n_rows;
    const ulong row = active ? SPGEMM_ROW(number) : 0;
% if not symbolic:
    const C_INDEX place = active ? c_indptr[row] : 0;
    uint n = active ? (uint)(c_indptr[row + 1] - place) : 0;
% if slots < products:
    // Rows of C with more columns than the hash table has slots are left to other kernels.
    if (n > ${slots}) {
        active = false;
        n = 0;
    }
% endif
% endif
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;
    local uint *const table = tables + team * ${slots}, *const counter = counters + team;
    local PLACE *const places = all_places + team * ${n_places};
% if symbolic:
    const uint shift = ${32 - bits}, size = ${slots};
% else:
    local T *const sums = all_sums + team * ${slots};
    // Twice as many slots of the hash table as a row has entries of C are enough for the row, however many products it has.
    const uint shift = max(clz((2 * n - 1) | 1u), ${32 - bits}u), size = 1u << (32 - shift);
% endif
    for (uint i = lane; i < size; i += ${lanes}) {
        table[i] = NO_COLUMN;
% if not symbolic:
        sums[i] = ZERO;
% endif
    }
    if (lane == 0)
        *counter = 0;
    uint n_new = 0;
% if ordered and not symbolic:
    local T *const terms = all_terms + team * ${lanes};
    local ushort *const slots = all_slots + team * ${lanes};
    local uint *const masks = all_masks + team * ${lanes} * TEAM_WORDS;
    for (uint i = lane; i < ${lanes} * TEAM_WORDS; i += ${lanes})
        masks[i] = 0;
% endif
    for (uint k = lane; k < length; k += ${lanes}) {
        const I column = a_indices[begin + k];
        places[k] = (PLACE)(b_indptr[column + 1] - b_indptr[column]);
    }
    team_sync();
    team_offsets(places, length, boxes + team * ${lanes});
    const uint n_products = places[length];
    uint k = 0;
% if free or symbolic or not ordered:
    for (uint first = lane; first - lane < n_products; first += ${items * lanes}) {
% else:
    for (uint round = 0; round < ${-(-products // (items * lanes))}; ++round) {
        const uint first = round * ${items * lanes} + lane;
% endif
% for u in range(items):
        const uint product_${u} = first + ${u * lanes};
        uint column_${u} = NO_COLUMN;
% if not symbolic:
        T term_${u} = ZERO;
% endif
        if (product_${u} < n_products) {
            k = team_find(places, k, length, product_${u});
            const I at = b_indptr[a_indices[begin + k]] + (I)(product_${u} - places[k]);
            column_${u} = (uint)b_indices[at];
% if not symbolic:
            term_${u} = MULTIPLY(from_a(a_data[begin + k]), from_x(b_data[at]));
% endif
        }
% endfor
% for u in range(items):
        {
            const bool has_column = column_${u} != NO_COLUMN;
            const uint slot = has_column ? insert(table, size - 1, shift, column_${u}, &n_new) : 0;
% if not symbolic and ordered:
            add_ordered(sums, terms, slots, masks, has_column, slot, term_${u});
% elif not symbolic:
            if (has_column)
                add_atomic(sums + slot, term_${u});
% endif
        }
% endfor
    }

% if symbolic:
    if (n_new)
        atomic_add(counter, n_new);
    team_sync();
    if (active && lane == 0)
        counts[row] = *counter;
% else:
    team_sync();
% if values_only:
    for (uint i = lane; i < n; i += ${lanes}) {
        const uint slot = insert(table, size - 1, shift, (uint)c_indices[place + i], &n_new);
        c_data[place + i] = sums[slot];
    }
% else:
    for (uint i = lane; i < size; i += ${lanes})
        if (table[i] != NO_COLUMN)
            places[atomic_inc(counter)] = (PLACE)i;
    team_sync();
% if ranked:
    for (uint i = lane; i < n; i += ${lanes}) {
        const uint slot = places[i], column = table[slot];
        uint rank = 0;
        for (uint j = 0; j < n; ++j)
            rank += table[places[j]] < column;
        c_indices[place + rank] = (C_INDEX)column;
        c_data[place + rank] = sums[slot];
    }
% else:
${rows.sort_locally(" " * 4, "n", free)}\
    for (uint i = lane; i < n; i += ${lanes}) {
        const uint slot = places[i];
        c_indices[place + i] = (C_INDEX)table[slot];
        c_data[place + i] = sums[slot];
    }
% endif
% endif
% endif
}
