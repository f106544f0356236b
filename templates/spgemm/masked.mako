<%doc>
The entries of C = A @ B at the places of a mask: sums[e] for entry e of the mask, and marks[e], 1 if the entry has a product. A
team of lanes takes equal stretches of the mask's entries, which may cut rows. The columns of a row's part of a stretch go to a
hash table in local memory; the lanes walk rows of B, cut to the span of these columns, and skip products whose column is not in
the table.

With `counted`, products are 1 and sums are numbers of products: products of many rows of B are shared out evenly over the lanes,
and counted by atomics. Else the lanes walk one row of B after another, as the columns within a row of B differ.

Source        hash and mask-compressed accumulators: Milakovic et al., Parallel Algorithms for Masked Sparse Matrix-Matrix
              Products; parts of equal numbers of entries: nonzero splitting
Index space   `lanes` work-items to each `window` entries of the mask
Inputs        A, B and the mask in canonical format, of n_rows rows; columns under 2^27
Local memory  for each team `slots` columns, sums and marks; what lanes exchange
Result        deterministic: the products of an entry are added in the order of A's row, or counted
</%doc>
typedef uint PLACE;
#include "team.cl"
#include "first_from.cl"
#include "row_of.cl"
#define NO_COLUMN UINT_MAX

// Return the slot of a column in the hash table of the mask's columns, or the free slot where the search for the column ends.
uint slot_of(local const uint *table, const uint last, const uint shift, const uint column)
{
    uint slot = column * 2654435769u >> shift;
    for (uint occupant = table[slot]; occupant != column && occupant != NO_COLUMN; occupant = table[slot])
        slot = (slot + 1) & last;
    return slot;
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const I n_entries,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_data,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const X_VALUE *restrict b_data,
    global const I *restrict m_indptr, global const I *restrict m_indices,
    global T *restrict sums, global uchar *restrict marks)
{
    local uint all_columns[${teams * slots}];
    local T all_sums[${teams * slots}];
    local uint all_offsets[${teams * (lanes + 1)}];
    local I all_begins[${work_group}];
% if counted:
    local uint all_boxes[${work_group}];
% else:
    local uchar all_hits[${teams * slots}];
    local T all_factors[${work_group}];
% endif
    const uint lane = get_local_id(0) % ${lanes}, team = get_local_id(0) / ${lanes};
    local uint *const columns = all_columns + team * ${slots}, *const offsets = all_offsets + team * ${lanes + 1};
    local T *const slot_sums = all_sums + team * ${slots};
    local I *const begins = all_begins + team * ${lanes};
% if counted:
    local uint *const box = all_boxes + team * ${lanes};
% else:
    local uchar *const hits = all_hits + team * ${slots};
    local T *const factors = all_factors + team * ${lanes};
% endif
    const ulong first = ((ulong)get_group_id(0) * ${teams} + team) * ${window};
    I begin = first < (ulong)n_entries ? (I)first : n_entries;
    const I stop = first + ${window} < (ulong)n_entries ? (I)(first + ${window}) : n_entries;
    I row = 0;
    while (begin < stop) {
        row = begin < m_indptr[row + 1] ? row : row_of(m_indptr, row, n_rows - 1, 1, begin);
        const I end = min(m_indptr[row + 1], stop);
        const uint n = (uint)(end - begin), shift = clz((2 * n - 1) | 1u), size = 1u << (32 - shift);
        for (uint i = lane; i < size; i += ${lanes}) {
            columns[i] = NO_COLUMN;
            slot_sums[i] = (T)(0);
% if not counted:
            hits[i] = 0;
% endif
        }
        team_sync();
        for (I e = begin + lane; e < end; e += ${lanes}) {
            const uint column = (uint)m_indices[e];
            uint slot = column * 2654435769u >> shift;
            while (atomic_cmpxchg((volatile local uint *)columns + slot, NO_COLUMN, column) != NO_COLUMN)
                slot = (slot + 1) & (size - 1);
        }
        team_sync();
        const I low = m_indices[begin], high = m_indices[end - 1], a_end = a_indptr[row + 1];
        for (I base = a_indptr[row]; base < a_end; base += ${lanes}) {
            I from = 0, to = 0;
            if (base + (I)lane < a_end) {
                const I of_b = a_indices[base + lane];
                from = b_indptr[of_b];
                to = b_indptr[of_b + 1];
                if (from < to && b_indices[from] < low)
                    from = first_from(b_indices, from, to, low);
                if (from < to && b_indices[to - 1] > high)
                    to = first_from(b_indices, from, to, high + 1);
% if not counted:
                factors[lane] = from_a(a_data[base + lane]);
% endif
            }
            begins[lane] = from;
            offsets[lane] = (uint)(to - from);
% if counted:
            team_sync();
            team_offsets(offsets, ${lanes}, box);
            const uint n_products = offsets[${lanes}];
            for (uint p = lane; p < n_products; p += ${lanes}) {
                const uint k = team_find(offsets, 0, ${lanes}, p), column = (uint)b_indices[begins[k] + (I)(p - offsets[k])];
                const uint slot = slot_of(columns, size - 1, shift, column);
                if (columns[slot] == column)
                    COUNT((volatile local T *)slot_sums + slot);
            }
% else:
            team_sync();
            const uint n_factors = (uint)min((I)${lanes}, a_end - base);
            for (uint k = 0; k < n_factors; ++k) {
                const I at = begins[k];
                const uint n_products = offsets[k];
                for (uint p = lane; p < n_products; p += ${lanes}) {
                    const uint column = (uint)b_indices[at + (I)p], slot = slot_of(columns, size - 1, shift, column);
                    if (columns[slot] == column) {
                        const T term = MULTIPLY(factors[k], from_x(b_data[at + (I)p]));
                        slot_sums[slot] = hits[slot] ? ADD(slot_sums[slot], term) : term;
                        hits[slot] = 1;
                    }
                }
                // Columns within a row of B differ, so that the lanes of a team synchronise between rows of B alone.
                team_sync();
            }
% endif
            team_sync();
        }
        for (I e = begin + lane; e < end; e += ${lanes}) {
            const uint slot = slot_of(columns, size - 1, shift, (uint)m_indices[e]);
            sums[e] = slot_sums[slot];
            marks[e] = ${"slot_sums[slot] != 0" if counted else "hits[slot]"};
        }
        team_sync();
        begin = end;
    }
}
