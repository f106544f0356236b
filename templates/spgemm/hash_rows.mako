<%doc>
Rows of C by a hash table of columns in local memory for each row, with linear probing; sums stand beside the columns.

The lanes are over one row of B at a time, as in dense_span.mako: its columns differ, so that they add its products without
atomics, and meet before the next row of B. Symbolic: columns that were new are counted. Numeric: slots in use are listed, sorted
by column (in registers, if a word of 32 bits holds a column and its slot; else in local memory), and written in that order.
Values: each column of C takes its sum.

Source        Nagasaka et al., NSPARSE; rows of B loaded ahead as in dense_span.mako
Index space   `lanes` work-items to a row, `teams` rows to a work-group
Inputs        see spgemm.cl; rows with at most `products` products. Those with more entries of C than `slots` are left out:
              in the symbolic phase, where others may be too, their counts become UINT_MAX. So are those with less than
              `min_entries`, by their counts in the symbolic phase
Local memory  for each row `slots` columns; but in the symbolic phase as many sums and numbers of 16 bits; where `entries` rows of
              B lie with the values of A; what lanes exchange
Result        deterministic: the products of a column are added in the order of A's row
</%doc>
<%namespace name="spans" file="spgemm/dense_span"/>\
<%namespace name="sorting" file="primitives/sort_network"/>\
## Sort the numbers of the n slots in use by the columns in the slots; `early`: the loop ends once all are sorted.
<%def name="sort_locally(indent, n, early)">\
${indent}// A bitonic merge of runs of width / 2 slots: a run is first compared with the mirrored run behind it: all runs ascend.
${indent}const uint pairs = ${n} > 1 ? 1u << (31 - clz(${n} - 1)) : 0;
${indent}uint width = 2, step = 1;
${indent}for (uint stage = 0; stage < ${bits * (bits + 1) // 2}${" && width <= 2 * pairs" if early else ""}; ++stage) {
${indent}    for (uint i = lane; width <= 2 * pairs && i < pairs; i += ${lanes}) {
${indent}        const uint low = 2 * i - (i & (step - 1)), high = 2 * step == width ? low ^ (width - 1) : low + step;
${indent}        if (high < ${n}) {
${indent}            const PLACE x = places[low], y = places[high];
${indent}            if (table[x] > table[y]) {
${indent}                places[low] = y;
${indent}                places[high] = x;
${indent}            }
${indent}        }
${indent}    }
${indent}    team_sync();
${indent}    if (step == 1)
${indent}        width *= 2;
${indent}    step = step == 1 ? width / 2 : step / 2;
${indent}}
</%def>\
typedef ushort PLACE;
typedef uint WORD;
#include "spgemm.cl"
#include "team.cl"
% if registers:
#include "lanes_u64.cl"
#define WORD_XOR lanes_xor_u32
${sorting.comparators(False)}
% endif

// Return the slot of a column in a row's hash table; a new column is inserted, for which the table always has room.
uint insert(local uint *table, const uint last, const uint shift, const uint column, uint *n_new)
{
    for (uint slot = column * 2654435769u >> shift;; slot = (slot + 1) & last) {
        uint occupant = ((volatile local uint *)table)[slot];
        if (occupant == NO_COLUMN) {
            occupant = atomic_cmpxchg((volatile local uint *)table + slot, NO_COLUMN, column);
            *n_new += occupant == NO_COLUMN;
            if (occupant == NO_COLUMN)
                return slot;
        }
        if (occupant == column)
            return slot;
    }
}
% if symbolic and slots < products:

// Insert a column into a row's hash table within ${tries} probes, and count it if it is new; return whether the table has it.
bool try_insert(local uint *table, const uint last, const uint shift, const uint column, uint *n_new)
{
    uint slot = column * 2654435769u >> shift;
    for (uint tries = 0; tries < ${tries}; ++tries, slot = (slot + 1) & last) {
        uint occupant = ((volatile local uint *)table)[slot];
        if (occupant == NO_COLUMN) {
            occupant = atomic_cmpxchg((volatile local uint *)table + slot, NO_COLUMN, column);
            *n_new += occupant == NO_COLUMN;
            if (occupant == NO_COLUMN)
                return true;
        }
        if (occupant == column)
            return true;
    }
    return false;
}
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    local uint tables[${teams * slots}], boxes[${work_group}];
    local I all_begins[${teams * (entries + 1)}];
    local ushort all_lengths[${teams * (entries + 1)}];
% if not symbolic:
    local T all_sums[${teams * slots}], all_factors[${teams * entries}];
% if not values_only:
    local PLACE all_places[${teams * slots}];
% endif
% endif
    const uint me = get_local_id(0), lanes = ${lanes}, lane = me % ${lanes}, team = me / ${lanes};
    const ulong number = (ulong)get_group_id(0) * ${teams} + team;
    bool active = number < n_rows;
    const ulong row = active ? SPGEMM_ROW(number) : 0;
% if not symbolic:
    const C_INDEX place = active ? c_indptr[row] : 0;
    uint n_columns = active ? (uint)(c_indptr[row + 1] - place) : 0;
% if slots < products or min_entries:
    // Rows of C with more columns than slots, or so few that a smaller hash table holds them, are left to other kernels.
    if (${" || ".join(([f"n_columns > {slots}"] if slots < products else []) + ([f"n_columns < {min_entries}"] if min_entries else []))}) {
        active = false;
        n_columns = 0;
    }
% endif
% elif min_entries:
    active = active && counts[row] >= ${min_entries};
% endif
% if min_entries and one:
    // A team (the lanes of a row) that is a whole sub-group may return early, as most rows of C have too few entries.
    if (!active)
        return;
% endif
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;
    local uint *const table = tables + team * ${slots}, *const box = boxes + team * ${lanes};
    local I *const begins = all_begins + team * ${entries + 1};
    local ushort *const lengths = all_lengths + team * ${entries + 1};
% if symbolic:
    const uint shift = ${32 - bits}, size = ${slots};
% else:
    local T *const sums = all_sums + team * ${slots}, *const factors = all_factors + team * ${entries};
    // Twice as many slots of the hash table as a row has entries of C are enough for the row, however many products it has.
    const uint shift = max(clz((2 * n_columns - 1) | 1u), ${32 - bits}u), size = 1u << (32 - shift);
% endif
    for (uint i = lane; i < size; i += ${lanes}) {
        table[i] = NO_COLUMN;
% if not symbolic:
        sums[i] = ZERO;
% endif
    }
    uint n_new = 0;
% if symbolic and slots < products:
    bool left_out = false;
% endif
    for (uint part = 0; part < length; part += ${entries}) {
        const uint n = min(length - part, ${entries}u);
${spans.stage(False, " " * 8)}\
        // A row of B without entries follows the last row of B in local memory: the loads of rows of B end there.
        if (lane == 0) {
            begins[n] = 0;
            lengths[n] = 0;
        }
        team_sync();
${spans.begin_pieces(ahead, " " * 8)}\
<% insert = "insert(table, size - 1, shift, (uint){}, &n_new)" %>\
${spans.add_pieces(ahead, " " * 8, f"left_out = left_out || !{insert.replace('insert', 'try_insert')}" if symbolic and slots < products else insert)}\
    }
% if symbolic:
% if slots < products:
    // n_new packs two counts, which one scan sums: new columns in the low 16 bits (at most 2^15), lanes with a full table above.
    n_new |= (uint)left_out << 16;
    n_new += team_scan(box, n_new);
    n_new = n_new >> 16 ? UINT_MAX : n_new;
% else:
    n_new += team_scan(box, n_new);
% endif
    if (active && lane == ${lanes - 1})
        counts[row] = n_new;
% elif values_only:
    team_sync();
    for (uint i = lane; i < n_columns; i += ${lanes})
        c_data[place + i] = sums[insert(table, size - 1, shift, (uint)c_indices[place + i], &n_new)];
% else:
    local PLACE *const places = all_places + team * ${slots};
    team_sync();
    uint n_mine = 0;
    for (uint i = lane; i < size; i += ${lanes})
        n_mine += table[i] != NO_COLUMN;
    uint at_place = team_scan(box, n_mine);
    for (uint i = lane; i < size; i += ${lanes})
        if (table[i] != NO_COLUMN)
            places[at_place++] = (PLACE)i;
    team_sync();
% if registers:
% for items in networks:
    ${"else " if not loop.first else ""}${f"if (n_columns <= {items * lanes})" if many or not loop.last else ""} {
% for u in range(items):
        const uint slot_${u} = ${u * lanes} + lane < n_columns ? places[${u * lanes} + lane] : 0;
        WORD word_${u} = ${u * lanes} + lane < n_columns ? table[slot_${u}] << ${bits} | slot_${u} : UINT_MAX;
% endfor
        // The memory of the hash table takes the sorted words, columns with the slots of their sums.
        team_sync();
${sorting.network(items, lanes, lane_width, work_group, False)}\
% for u in range(items):
        if (lane * ${items} + ${u} < n_columns)
            table[lane * ${items} + ${u}] = word_${u};
% endfor
    }
% endfor
% if many:
    else {
${sort_locally(" " * 8, "n_columns", False)}\
        for (uint i = lane; i < n_columns; i += ${lanes}) {
            const uint slot = places[i];
            c_indices[place + i] = (C_INDEX)table[slot];
            c_data[place + i] = sums[slot];
        }
        n_columns = 0;
    }
% endif
    team_sync();
    for (uint i = lane; i < n_columns; i += ${lanes}) {
        const uint word = table[i];
        c_indices[place + i] = (C_INDEX)(word >> ${bits});
        c_data[place + i] = sums[word & ${slots - 1}];
    }
% else:
${sort_locally(" " * 4, "n_columns", False)}\
    for (uint i = lane; i < n_columns; i += ${lanes}) {
        const uint slot = places[i];
        c_indices[place + i] = (C_INDEX)table[slot];
        c_data[place + i] = sums[slot];
    }
% endif
% endif
}
