<%doc>
Rows of C with dense accumulators: products are added where their column lies in an array as long as a row of C is wide, and the
columns that C has are set in an array of bits, a word of B's masks at a time. The bits are visited in order and cleared, so both
arrays are empty again after each row.

Each worker claims chunks of rows until there are none, and has arrays of its own: accumulators, all ZERO between rows; bits, a word
of 64 columns each; and a bit for each word, by which words are found.

Source        the dense accumulator of Gustavson (1978); masks as in HSMU-SpGEMM
Index space   workers, as many as there are arrays for
Inputs        see spgemm.cl and masks.mako; chunk_row[c]: the first row of chunk c of n_chunks, chunk_row[n_chunks] all rows;
              claimed: 0
Local memory  none
Result        deterministic: products of a column are added in the order of A's row
</%doc>
#include "spgemm.cl"

// How many of the n ascending rows in a list are before one.
% if listed:
ulong rows_before(global const I *list, const ulong n, const ulong row)
{
    ulong low = 0, high = n;
    while (low < high) {
        const ulong middle = low + (high - low) / 2;
        if ((ulong)list[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPGEMM_PARAMETERS,
    const uint n_chunks, global const long *restrict chunk_row, volatile global uint *restrict claimed, const ulong n_words
% if not symbolic:
    , global T *restrict all_accumulators
% endif
% if not values_only:
    , global ulong *restrict all_bits,
    global const uint *restrict b_words, global const ulong *restrict b_masks, global const uint *restrict b_n_words
% endif
    )
{
    uint chunk = atomic_inc(claimed);
    if (chunk >= n_chunks)
        return;
% if not symbolic:
    global T *restrict accumulator = all_accumulators + get_global_id(0) * n_words * 64;
    for (ulong i = 0; i < n_words * 64; ++i)
        accumulator[i] = ZERO;
% endif
% if not values_only:
    const ulong n_groups = (n_words + 63) / 64;
    global ulong *restrict bits = all_bits + get_global_id(0) * (n_words + n_groups);
    global ulong *restrict found = bits + n_words;
    for (ulong i = 0; i < n_words + n_groups; ++i)
        bits[i] = 0;
% endif

    for (; chunk < n_chunks; chunk = atomic_inc(claimed)) {
% if listed:
        const ulong first_slot = rows_before(rows + first, n_rows, chunk_row[chunk]);
        const ulong last_slot = rows_before(rows + first, n_rows, chunk_row[chunk + 1]);
% else:
        const ulong first_slot = chunk_row[chunk], last_slot = chunk_row[chunk + 1];
% endif
        for (ulong slot = first_slot; slot < last_slot; ++slot) {
            const ulong row = SPGEMM_ROW(slot);
            const I a_end = a_indptr[row + 1];
% if not values_only:
            uint lowest = UINT_MAX, highest = 0;
% endif
            for (I a = a_indptr[row]; a < a_end; ++a) {
                const I k = a_indices[a];
                const I begin = b_indptr[k];
% if not values_only:
                const uint length = b_n_words[k];
                if (length) {
                    lowest = min(lowest, b_words[begin]);
                    highest = max(highest, b_words[begin + (I)length - 1]);
                }
                for (I j = begin; j < begin + (I)length; ++j) {
                    const uint word = b_words[j];
                    bits[word] |= b_masks[j];
                    found[word >> 6] |= 1ul << (word & 63);
                }
% endif
% if not symbolic:
                const T factor = from_a(a_data[a]);
                const I end = b_indptr[k + 1];
                for (I j = begin; j < end; ++j) {
                    const COLUMN column = (COLUMN)b_indices[j];
                    accumulator[column] = ADD(accumulator[column], MULTIPLY(factor, from_x(b_data[j])));
                }
% endif
            }

% if values_only:
            const C_INDEX c_end = c_indptr[row + 1];
            for (C_INDEX place = c_indptr[row]; place < c_end; ++place) {
                const C_INDEX column = c_indices[place];
                c_data[place] = accumulator[column];
                accumulator[column] = ZERO;
            }
% else:
% if symbolic:
            uint count = 0;
% else:
            C_INDEX place = c_indptr[row];
% endif
            for (ulong group = lowest >> 6; group <= highest >> 6; ++group) {
                ulong words = found[group];
                if (!words)
                    continue;
                found[group] = 0;
                do {
                    const ulong word = group * 64 + popcount((words & -words) - 1);
                    words &= words - 1;
                    ulong mask = bits[word];
                    bits[word] = 0;
% if symbolic:
                    count += (uint)popcount(mask);
% else:
                    do {
                        const ulong column = word * 64 + popcount((mask & -mask) - 1);
                        mask &= mask - 1;
                        c_indices[place] = (C_INDEX)column;
                        c_data[place] = accumulator[column];
                        accumulator[column] = ZERO;
                        ++place;
                    } while (mask);
% endif
                } while (words);
            }
% if symbolic:
            counts[row] = count;
% endif
% endif
        }
    }
}
