<%doc>
The entries of C = A @ B at the places of a mask: sums[e] for entry e of the mask, and marks[e], 1 if the entry has a product. A
worker claims chunks of rows until none is left: the rows whose first entry is in a stretch of `chunk` entries of the mask. With
`places`, a worker has a table with the place of each column in the mask's row; else it searches the mask's row. With `places` and
`counted`, the table has 1 for each column of the mask's row and counts on from there: no branch depends on whether a product's
column is in the mask (0.33 to 0.51 of the time with a branch, on Zen 4). Rows of B that are longer than `searched` are cut to the
columns of the mask's row before the worker walks them.

Source        mask-compressed accumulators: Milakovic et al., Parallel Algorithms for Masked Sparse Matrix-Matrix Products
Index space   workers, as many as there are arrays for
Inputs        A, B and the mask in canonical format, of n_rows rows; claimed: 0; all_places: zeros, n_columns to a worker
Local memory  none
Result        deterministic: the products of an entry are added in the order of A's row
</%doc>
<% tallied = places and counted %>\
#include "first_from.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const I n_entries,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_data,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const X_VALUE *restrict b_data,
    global const I *restrict m_indptr, global const I *restrict m_indices,
    global T *restrict sums, global uchar *restrict marks,
    const uint n_chunks, const ulong chunk, volatile global uint *restrict claimed
% if places:
    , const ulong n_columns, global I *restrict all_places
% endif
    )
{
% if places:
    global I *restrict places = all_places + get_global_id(0) * n_columns;
% endif
    for (uint c = atomic_inc(claimed); c < n_chunks; c = atomic_inc(claimed)) {
        const ulong first = c * chunk;
        const I stop = first + chunk < (ulong)n_entries ? (I)(first + chunk) : n_entries;
        for (I row = first_from(m_indptr, 0, n_rows, (I)first); row < n_rows && m_indptr[row] < stop; ++row) {
            const I begin = m_indptr[row], end = m_indptr[row + 1];
            if (begin == end)
                continue;
            for (I e = begin; e < end; ++e) {
% if tallied:
                places[m_indices[e]] = 1;
% else:
                sums[e] = (T)(0);
                marks[e] = 0;
% if places:
                places[m_indices[e]] = e - begin + 1;
% endif
% endif
            }
            const I low = m_indices[begin], high = m_indices[end - 1], a_end = a_indptr[row + 1];
            for (I a = a_indptr[row]; a < a_end; ++a) {
                const I of_b = a_indices[a];
                I b = b_indptr[of_b], b_end = b_indptr[of_b + 1];
                // A worker (a work-item) walks a short row of B in less time than it searches the row by bisection.
                if (b_end - b > ${searched}) {
                    if (b_indices[b] < low)
                        b = first_from(b_indices, b, b_end, low);
                    if (b < b_end && b_indices[b_end - 1] > high)
                        b_end = first_from(b_indices, b, b_end, high + 1);
                }
% if not counted:
                const T factor = from_a(a_data[a]);
% endif
                for (; b < b_end; ++b) {
% if tallied:
                    const I column = b_indices[b], tally = places[column];
                    places[column] = tally + (tally != 0);
                }
% else:
% if places:
                    const I place = places[b_indices[b]];
                    if (place) {
                        const I e = begin + place - 1;
% else:
                    const I column = b_indices[b], e = first_from(m_indices, begin, end, column);
                    if (e < end && m_indices[e] == column) {
% endif
% if counted:
                        sums[e] += 1;
% else:
                        const T term = MULTIPLY(factor, from_x(b_data[b]));
                        sums[e] = marks[e] ? ADD(sums[e], term) : term;
                        marks[e] = 1;
% endif
                    }
                }
% endif
            }
% if places or counted:
            for (I e = begin; e < end; ++e) {
% if tallied:
                sums[e] = (T)(places[m_indices[e]] - 1);
% endif
% if places:
                places[m_indices[e]] = 0;
% endif
% if counted:
                marks[e] = sums[e] != 0;
% endif
            }
% endif
        }
    }
}
