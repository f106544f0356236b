<%doc>
Rows of C by a sum for each column that a row spans, in local memory: from its smallest column, rounded down to a multiple of 32,
on.

The lanes are over one row of B at a time. As its columns differ, they add its products without atomics, and meet before the next
row of B. A's row is taken `entries` entries at a time: where their rows of B lie goes to local memory, so that no load waits for
another. A row of B is cut into pieces of `lanes` entries; while one is added, the next `ahead - 1` are being loaded. Symbolic and
numeric: a byte for each column tells whether it is there; 32 of them become a word of bits, whose sums give places. Values: each
column of C takes its sum.

Source        the dense accumulators of spECK (Parger et al., 2020), rows of B one after another as in NSPARSE (Nagasaka et al.,
              2017)
Index space   `lanes` work-items to a row, `teams` rows to a work-group
Inputs        see spgemm.cl; rows of C whose columns are below the smallest, rounded down to a multiple of 32, plus `columns`
Local memory  for each row `columns` sums and bytes, where `entries` rows of B lie with the values of A, and what lanes exchange
Result        deterministic: the products of a column are added in the order of A's row
</%doc>
<% outputs = 4  # entries of C that a lane writes at a time, so that their loads do not wait for one another
%>\
typedef ushort PLACE;
#include "spgemm.cl"
#include "team.cl"
% if not symbolic and not values_only:
#include "byte_flags.cl"
% endif

% if not values_only:
// Set low and high to the least low and the greatest high column of the lanes of a row; lows and highs hold a column for each.
void team_range(local COLUMN *lows, local COLUMN *highs, COLUMN *low, COLUMN *high)
{
    const uint lane = get_local_id(0) % TEAM;
    // A lane takes the low and high columns of the lane that is `step` lanes on, in a ring: to take columns twice does no harm.
    for (uint step = 1; step < TEAM; step *= 2) {
        const uint other = (lane + step) % TEAM;
        lows[lane] = *low;
        highs[lane] = *high;
        team_sync();
        *low = min(*low, lows[other]);
        *high = max(*high, highs[other]);
        team_sync();
    }
}

% endif
## Stage n entries of A's row from entry `part` on: all loads of a kind are in flight before the first is used.
<%def name="stage(ranged, indent)">\
${indent}for (uint first = lane; first < n; first += ${2 * lanes}) {
% for u in range(2):
${indent}    const uint k_${u} = first + ${u * lanes};
${indent}    I of_a_${u} = 0, from_${u} = 0, to_${u} = 0;
% if not symbolic:
${indent}    A_VALUE a_${u} = (A_VALUE)(0);
% endif
${indent}    if (k_${u} < n) {
${indent}        of_a_${u} = a_indices[begin + (I)(part + k_${u})];
% if not symbolic:
${indent}        a_${u} = a_data[begin + (I)(part + k_${u})];
% endif
${indent}    }
% endfor
% for u in range(2):
${indent}    if (k_${u} < n) {
${indent}        from_${u} = b_indptr[of_a_${u}];
${indent}        to_${u} = b_indptr[of_a_${u} + 1];
${indent}    }
% endfor
% for u in range(2):
% if ranged:
${indent}    if (from_${u} < to_${u}) {
${indent}        low = min(low, (COLUMN)b_indices[from_${u}]);
${indent}        high = max(high, (COLUMN)b_indices[to_${u} - 1]);
${indent}    }
% endif
${indent}    if (k_${u} < n) {
${indent}        begins[k_${u}] = from_${u};
${indent}        lengths[k_${u}] = (ushort)(to_${u} - from_${u});
% if not symbolic:
${indent}        factors[k_${u}] = from_a(a_${u});
% endif
${indent}    }
% endfor
${indent}}
</%def>\
## Add rows of B in pieces: begin_pieces starts the loads of the first pieces, add_pieces adds all pieces.
## Row k of the n rows of B has lengths[k] entries from begins[k] on, and the factor factors[k] of A; an empty row behind the
## last one ends the loading. The arrays sums and present begin at column start; ahead pieces are in flight.
<%def name="begin_pieces(ahead, indent)">\
${indent}uint k = 0, remaining = lengths[0], next_length;
${indent}I at = begins[0] + (I)lane, next_begin;
${indent}bool more;
% for u in range(ahead):
${indent}uint k_${u};
${indent}I column_${u};
% if not symbolic:
${indent}X_VALUE b_${u} = (X_VALUE)(0);
% endif
${load_piece(u, indent)}\
% endfor
</%def>\
<%def name="add_pieces(ahead, indent, slot_of=None)">\
${indent}while (k_0 < n) {
% for u in range(ahead):
${indent}    if (column_${u} != (I)-1) {
% if slot_of and symbolic:
${indent}        ${slot_of.format(f"column_{u}")};
% else:
${indent}        const uint slot = ${slot_of.format(f"column_{u}") if slot_of else f"(uint)((COLUMN)column_{u} - start)"};
% endif
% if not symbolic:
${indent}        sums[slot] = ADD(sums[slot], MULTIPLY(factors[k_${u}], from_x(b_${u})));
% endif
% if not (values_only or slot_of):
${indent}        present[slot] = 1;
% endif
${indent}    }
${load_piece(u, indent + " " * 4)}\
${indent}    team_sync();
% endfor
${indent}}
</%def>\
## Start the loads of a piece, and advance to the next piece: row k of B has `remaining` entries that are not loaded, the first
## one of this lane at position `at`. Branch-free, as all lanes wait for each branch. A column of -1 is none.
<%def name="load_piece(u, indent)">\
${indent}k_${u} = k;
${indent}column_${u} = (I)-1;
${indent}if (lane < remaining) {
${indent}    column_${u} = b_indices[at];
% if not symbolic:
${indent}    b_${u} = b_data[at];
% endif
${indent}}
${indent}more = remaining > ${lanes};
${indent}k = more ? k : min(k + 1, n);
${indent}next_length = lengths[k];
${indent}next_begin = begins[k];
${indent}remaining = more ? remaining - ${lanes} : next_length;
${indent}at = more ? at + ${lanes} : next_begin + (I)lane;
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    local I all_begins[${teams * (entries + 1)}];
    local ushort all_lengths[${teams * (entries + 1)}];
% if not values_only:
    // Flags of the columns of C, 1 if the row has the column: a byte each, sixteen to a uint4.
    local uint4 all_flags[${teams * columns // 16}];
    local uint boxes[${work_group}];
    local COLUMN all_lows[${work_group}], all_highs[${work_group}];
% endif
% if not symbolic:
    local T all_sums[${teams * columns}], all_factors[${teams * entries}];
% if not values_only:
    local PLACE all_ranks[${teams * (columns // 32 + 1)}];
% endif
% endif
    TEAM_ROW
    local I *const begins = all_begins + team * ${entries + 1};
    local ushort *const lengths = all_lengths + team * ${entries + 1};
% if not values_only:
    local uint4 *const flags = all_flags + team * ${columns // 16};
    local uchar *const present = (local uchar *)flags;
    local uint *const box = boxes + team * ${lanes};
% endif
% if not symbolic:
    local T *const sums = all_sums + team * ${columns}, *const factors = all_factors + team * ${entries};
    const C_INDEX place = active ? c_indptr[row] : 0;
% endif
% if values_only:
    const uint n_columns = active ? (uint)(c_indptr[row + 1] - place) : 0;
    const COLUMN low = n_columns ? (COLUMN)c_indices[place] : 0, high = n_columns ? (COLUMN)c_indices[place + n_columns - 1] : 0;
% else:
    COLUMN low = NO_COLUMN, high = 0;
    // Parts of A's row are loaded into local memory from last to first, so that the first part is there at the end.
    for (uint part = (length + ${entries - 1}) / ${entries} * ${entries}; part > 0;) {
        part -= ${entries};
        const uint n = min(length - part, ${entries}u);
${stage(True, " " * 8)}\
    }
% endif
    COLUMN start = 0;
    uint n_words = 0;
    for (uint part = 0; part < length; part += ${entries}) {
        const uint n = min(length - part, ${entries}u);
% if not values_only:
        if (part) {
${stage(False, " " * 12)}\
        }
% else:
${stage(False, " " * 8)}\
% endif
        // A row of B without entries follows the last row of B in local memory: the loads of rows of B end there.
        if (lane == 0) {
            begins[n] = 0;
            lengths[n] = 0;
        }
        team_sync();
${begin_pieces(ahead, " " * 8)}\
        // The first loads of rows of B are in flight while flags and sums are cleared here.
        if (part == 0) {
% if values_only:
            const bool empty = n_columns == 0;
% else:
            team_range(all_lows + team * ${lanes}, all_highs + team * ${lanes}, &low, &high);
            const bool empty = low > high;
% endif
            start = low / 32 * 32;
            n_words = empty ? 0 : (uint)(high - start) / 32 + 1;
% if not values_only:
            for (uint i = lane; i < 2 * n_words; i += ${lanes})
                flags[i] = (uint4)(0);
% endif
% if not symbolic:
            for (uint i = lane; i < 32 * n_words; i += ${lanes})
                sums[i] = ZERO;
% endif
            team_sync();
        }
${add_pieces(ahead, " " * 8)}\
    }
% if symbolic:
    uint count = 0;
    for (uint i = lane; i < 2 * n_words; i += ${lanes})
        count += popcount(flags[i].x) + popcount(flags[i].y) + popcount(flags[i].z) + popcount(flags[i].w);
    // The scan adds up the lanes' counts of entries of C in the order of lanes: the last lane has the row's number of entries.
    count += team_scan(box, count);
    if (active && lane == ${lanes - 1})
        counts[row] = count;
% elif values_only:
    for (uint first = lane; first < n_columns; first += ${outputs * lanes}) {
% for u in range(outputs):
        const uint i_${u} = first + ${u * lanes};
        const COLUMN c_${u} = i_${u} < n_columns ? (COLUMN)c_indices[place + i_${u}] : start;
% endfor
% for u in range(outputs):
        if (i_${u} < n_columns)
            c_data[place + i_${u}] = sums[(uint)(c_${u} - start)];
% endfor
    }
% else:
    local PLACE *const ranks = all_ranks + team * ${columns // 32 + 1};
    for (uint i = lane; i < n_words; i += ${lanes}) {
        const uint word = flags_word(flags, i);
        // The word of bits overwrites the flags of columns that it was made of, as no other lane reads them.
        flags[2 * i].x = word;
        ranks[i] = (PLACE)popcount(word);
    }
    team_sync();
    team_offsets(ranks, n_words, box);
    for (uint first = lane; first < 32 * n_words; first += ${outputs * lanes}) {
% for u in range(outputs):
        const uint i_${u} = first + ${u * lanes};
        const uint word_${u} = i_${u} < 32 * n_words ? flags[i_${u} / 32 * 2].x : 0, bit_${u} = 1u << i_${u} % 32;
        const uint rank_${u} = i_${u} < 32 * n_words ? ranks[i_${u} / 32] : 0;
% endfor
% for u in range(outputs):
        if (word_${u} & bit_${u}) {
            const C_INDEX target = place + rank_${u} + popcount(word_${u} & (bit_${u} - 1));
            c_indices[target] = (C_INDEX)(start + i_${u});
            c_data[target] = sums[i_${u}];
        }
% endfor
    }
% endif
}
