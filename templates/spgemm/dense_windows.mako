<%doc>
Rows of C window by window, in local memory: a window is `columns` neighbouring columns, each with a byte that tells whether it is
there, and outside the symbolic phase with a sum. The columns of B are cut into n_parts parts of part_columns each, which are made
at the same time, so that a long row does not take long: the first window begins with the part, each next one at the smallest
column left in it.

A's row is taken `entries` entries at a time. Where their rows of B lie in the window is found by bisection; their products are
added as in dense_span.mako. Numeric: the columns that are there are listed, and then written side by side.

Source        the dense windows of spECK (Parger et al., 2020), rows of B one after another as in NSPARSE (Nagasaka et al., 2017)
Index space   a work-group, which is a team, to a part of a row; of a row one after another
Inputs        see spgemm.cl; any row; outside the symbolic phase those with less than `min_entries` entries are left out. Of
              several parts, where in a row of C each begins: n_parts for each slot
Local memory  a window, where `entries` rows of B lie with the values of A, and what lanes exchange
Result        deterministic: the products of a column are added in the order of A's row. Symbolic: the entries of a row in counts
              by row, or of each part by slot, where there are several
</%doc>
<%namespace name="spans" file="spgemm/dense_span"/>\
typedef ushort PLACE;
#include "spgemm.cl"
#include "team.cl"
% if not symbolic and not values_only:
#include "byte_flags.cl"
% endif

// Return the least of the columns x that the lanes of a row have.
COLUMN team_min(local COLUMN *box, COLUMN x)
{
    const uint lane = get_local_id(0) % TEAM;
    // A lane takes the smaller of its column x and that of the lane `step` lanes on, in a ring; repeats do no harm.
    for (uint step = 1; step < TEAM; step *= 2) {
        box[lane] = x;
        team_sync();
        x = min(x, box[(lane + step) % TEAM]);
        team_sync();
    }
    return x;
}

// Define a bisection NAME: return the first position from low to high - 1 whose column is at least x; high if none is.
#define DEFINE_REACH(NAME, TYPE, AT) \
    AT NAME(global const TYPE *restrict columns, AT low, AT high, const COLUMN x) \
    { \
        while (low < high) { \
            const AT middle = low + (high - low) / 2; \
            if ((COLUMN)columns[middle] < x) \
                low = middle + 1; \
            else \
                high = middle; \
        } \
        return low; \
    }
DEFINE_REACH(reach, I, I)
% if values_only:
DEFINE_REACH(reach_in_c, C_INDEX, C_INDEX)
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPGEMM_PARAMETERS,
% if not symbolic and not values_only:
    global const uint *restrict part_places,
% endif
    const uint n_parts, const ulong part_columns)
{
    local I begins[${entries + 1}];
    local ushort lengths[${entries + 1}];
    local COLUMN column_box[${lanes}];
% if not values_only:
    local uint4 flags[${columns // 16}];
    local uint box[${lanes}];
    local uchar *const present = (local uchar *)flags;
% endif
% if not symbolic:
    local T sums[${columns}], factors[${entries}];
% if not values_only:
    // listed: the columns of the row of C among the ${32 * lanes} columns that ${lanes} words of flags stand for.
    local ushort listed[${32 * lanes}];
% endif
% endif
    const uint lane = get_local_id(0), part = (uint)(get_group_id(0) % n_parts);
    const ulong slot_of_row = get_group_id(0) / n_parts, row = SPGEMM_ROW(slot_of_row);
    const I begin = a_indptr[row];
    COLUMN start = (COLUMN)(part * part_columns);
    const COLUMN end = (COLUMN)min((ulong)NO_COLUMN, (part + 1) * part_columns);
    const uint length = (uint)(a_indptr[row + 1] - begin);
% if symbolic:
    uint count = 0;
% else:
    C_INDEX place = c_indptr[row];
    const C_INDEX end_place = c_indptr[row + 1];
% if min_entries:
    if (end_place - place < ${min_entries})
        return;
% endif
% if values_only:
    place = reach_in_c(c_indices, place, end_place, start);
% else:
    if (n_parts > 1)
        place += part_places[slot_of_row * n_parts + part];
% endif
% endif
    while (start < end) {
        const uint width = (uint)min(end - start, (COLUMN)${columns});
        const bool last = end - start == width;
% if not values_only:
        for (uint i = lane; i < ${columns // 16}; i += ${lanes})
            flags[i] = (uint4)(0);
% endif
% if not symbolic:
        for (uint i = lane; i < ${columns}; i += ${lanes})
            sums[i] = ZERO;
% endif
        COLUMN next = NO_COLUMN;
        for (uint chunk = 0; chunk < length; chunk += ${entries}) {
            const uint n = min(length - chunk, ${entries}u);
            for (uint i = lane; i < n; i += ${lanes}) {
                const I of_a = a_indices[begin + (I)(chunk + i)], first = b_indptr[of_a], behind = b_indptr[of_a + 1];
                const I from = reach(b_indices, first, behind, start);
                const I to = reach(b_indices, from, behind, start + width);
                begins[i] = from;
                lengths[i] = (ushort)(to - from);
                if (to < behind)
                    next = min(next, (COLUMN)b_indices[to]);
% if not symbolic:
                factors[i] = from_a(a_data[begin + (I)(chunk + i)]);
% endif
            }
            if (lane == 0) {
                begins[n] = 0;
                lengths[n] = 0;
            }
            team_sync();
${spans.begin_pieces(ahead, " " * 12)}\
${spans.add_pieces(ahead, " " * 12)}\
        }
% if symbolic:
        team_sync();
        for (uint i = lane; i < ${columns // 16}; i += ${lanes})
            count += popcount(flags[i].x) + popcount(flags[i].y) + popcount(flags[i].z) + popcount(flags[i].w);
% elif values_only:
        team_sync();
        const C_INDEX to_place = reach_in_c(c_indices, place, end_place, start + width);
        const uint n_here = (uint)(to_place - place);
        for (uint j = lane; j < n_here; j += ${lanes})
            c_data[place + (C_INDEX)j] = sums[(uint)((COLUMN)c_indices[place + (C_INDEX)j] - start)];
        place = to_place;
% else:
        team_sync();
        for (uint first = 0; first < ${columns // 32}; first += ${lanes}) {
            const uint i = first + lane;
            uint word = i < ${columns // 32} ? flags_word(flags, i) : 0;
            const uint before = team_scan(box, popcount(word));
            if (lane == ${lanes - 1})
                box[0] = before + popcount(word);
            for (uint at_list = before; word; word &= word - 1)
                listed[at_list++] = (ushort)(32 * i + popcount((word & -word) - 1));
            team_sync();
            const uint n_listed = box[0];
            for (uint j = lane; j < n_listed; j += ${lanes}) {
                c_indices[place + (C_INDEX)j] = (C_INDEX)(start + listed[j]);
                c_data[place + (C_INDEX)j] = sums[listed[j]];
            }
            place += (C_INDEX)n_listed;
            team_sync();
        }
% endif
        start = last ? NO_COLUMN : team_min(column_box, next);
        team_sync();
    }
% if symbolic:
    // The scan adds up the lanes' counts of entries of C in the order of lanes: the last lane has the row's number of entries.
    count += team_scan(box, count);
    if (lane == ${lanes - 1})
        counts[n_parts > 1 ? get_group_id(0) : row] = count;
% endif
}
