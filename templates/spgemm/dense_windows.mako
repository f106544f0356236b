<%doc>
Rows of C window by window: a window is ${columns} neighbouring columns, each with a bit, and outside the symbolic phase a sum, in
local memory. The first begins at a row's smallest column, each next one at the smallest column that is left.

A's row is taken ${entries} entries at a time. Where each one's part of a row of B lies in the window is found by bisection; the
products in it are shared out evenly over the lanes, which fetch ${items} at a time.

Source        the dense windows of spECK (Parger et al., 2020), products shared out as in Liu et al., Register-Aware SpGEMM
Index space   a work-group to a row
Inputs        see spgemm.cl; any row, of which those with less than ${least} entries are left out outside the symbolic phase
Local memory  a window, where the products of ${entries} entries lie, and what lanes exchange
Result        ordered: deterministic, the products of a column are added in the order of A's row, without atomics on values;
              else sums are added in any order. Columns and counts are exact
</%doc>
typedef uint PLACE;
#include "spgemm.cl"
#include "team.cl"
% if not symbolic:
#include "add_${"ordered" if ordered else "atomic"}.cl"
% endif

// Return the smallest x of the team.
COLUMN team_min(local COLUMN *box, const COLUMN x)
{
    const uint lane = get_local_id(0);
    box[lane] = x;
    team_sync();
    for (uint step = 1; step < TEAM; step *= 2) {
        if (lane % (2 * step) == 0 && lane + step < TEAM)
            box[lane] = min(box[lane], box[lane + step]);
        team_sync();
    }
    const COLUMN smallest = box[0];
    team_sync();
    return smallest;
}

// Return where from begin on, up to end, there is the first column that is so far behind start.
I reach(global const I *restrict b_indices, I begin, I end, const COLUMN start, const COLUMN distance)
{
    while (begin < end) {
        const I middle = begin + (end - begin) / 2;
        const COLUMN column = (COLUMN)b_indices[middle];
        if (column < start || column - start < distance)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    local uint bits[${columns // 32}], box[${lanes}];
    local COLUMN column_box[${lanes}];
    local PLACE places[${entries + 1}];
    local I cursors[${entries}];
% if not symbolic:
    local T sums[${columns}];
    local PLACE ranks[${columns // 32 + 1}];
% if ordered:
    local T terms[${lanes}];
    local ushort slots[${lanes}];
    local uint masks[${lanes} * TEAM_WORDS];
% endif
% endif
    const uint lane = get_local_id(0);
    const ulong row = SPGEMM_ROW(get_group_id(0));
    const I begin = a_indptr[row];
% if symbolic:
    const uint length = (uint)(a_indptr[row + 1] - begin);
% else:
    C_INDEX place = c_indptr[row];
    const uint length = c_indptr[row + 1] - place < ${least} ? 0 : (uint)(a_indptr[row + 1] - begin);
% if ordered:
    for (uint i = lane; i < ${lanes} * TEAM_WORDS; i += ${lanes})
        masks[i] = 0;
% endif
% endif
    COLUMN next = NO_COLUMN;
    for (uint k = lane; k < length; k += ${lanes}) {
        const I of_a = a_indices[begin + k], first = b_indptr[of_a];
        if (first < b_indptr[of_a + 1])
            next = min(next, (COLUMN)b_indices[first]);
    }
    COLUMN start = team_min(column_box, next);
% if symbolic:
    uint count = 0;
% endif
    while (start != NO_COLUMN) {
        for (uint i = lane; i < ${columns // 32}; i += ${lanes})
            bits[i] = 0;
% if not symbolic:
        for (uint i = lane; i < ${columns}; i += ${lanes})
            sums[i] = ZERO;
% endif
        next = NO_COLUMN;
        for (uint part = 0; part < length; part += ${entries}) {
            const uint n = min(length - part, ${entries}u);
            for (uint k = lane; k < n; k += ${lanes}) {
                const I of_a = a_indices[begin + part + k], end = b_indptr[of_a + 1];
                const I from = reach(b_indices, b_indptr[of_a], end, start, 0);
                const I to = reach(b_indices, from, end, start, ${columns});
                cursors[k] = from;
                places[k] = (PLACE)(to - from);
                if (to < end)
                    next = min(next, (COLUMN)b_indices[to]);
            }
            team_sync();
            team_offsets(places, n, box);
            const uint n_products = places[n];
            uint k = 0;
            for (uint first = 0; first < n_products; first += ${items * lanes}) {
% for u in range(items):
                const uint product_${u} = first + ${u * lanes} + lane;
                const bool there_${u} = product_${u} < n_products;
                uint slot_${u} = 0;
% if not symbolic:
                T term_${u} = ZERO;
% endif
                if (there_${u}) {
                    k = team_find(places, k, n, product_${u});
                    const I at = cursors[k] + (I)(product_${u} - places[k]);
                    slot_${u} = (uint)((COLUMN)b_indices[at] - start);
% if not symbolic:
                    term_${u} = MULTIPLY(from_a(a_data[begin + part + k]), from_x(b_data[at]));
% endif
                }
% endfor
% for u in range(items):
                if (there_${u})
                    atomic_or(bits + slot_${u} / 32, 1u << slot_${u} % 32);
% if not symbolic and ordered:
                add_ordered(sums, terms, slots, masks, there_${u}, slot_${u}, term_${u});
% elif not symbolic:
                if (there_${u})
                    add_atomic(sums + slot_${u}, term_${u});
% endif
% endfor
            }
            team_sync();
        }
% if symbolic:
        for (uint i = lane; i < ${columns // 32}; i += ${lanes})
            count += popcount(bits[i]);
% else:
        for (uint i = lane; i < ${columns // 32}; i += ${lanes})
            ranks[i] = popcount(bits[i]);
        team_sync();
        team_offsets(ranks, ${columns // 32}, box);
        for (uint i = lane; i < ${columns}; i += ${lanes}) {
            const uint word = bits[i / 32], bit = 1u << i % 32;
            if (word & bit) {
                const C_INDEX target = place + ranks[i / 32] + popcount(word & (bit - 1));
% if not values_only:
                c_indices[target] = (C_INDEX)(start + i);
% endif
                c_data[target] = sums[i];
            }
        }
        place += ranks[${columns // 32}];
% endif
        start = team_min(column_box, next);
    }
% if symbolic:
    // The counts of the lanes come after one another: the last sees them all.
    count += team_scan(box, count);
    if (lane == ${lanes - 1})
        counts[row] = count;
% endif
}
