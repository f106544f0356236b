<%doc>
Rows of C with dense accumulators: products are added where their column lies in an array as long as a row of C is wide, and the
columns that C has are set in an array of bits, a word of B's masks at a time. The bits are visited in order and cleared, so both
arrays are empty again after each row. Rows of B that follow one another in A's row and have the same columns are added at once.

Rows of a few products need no accumulator: the products are listed, and the place of a product is the number of smaller columns,
which vectors count. A row of A whose columns are those of the row before, or one more each where rows of B do likewise, gives C's
row the columns of the row before: so do neighbours on regular grids, and the unknowns of a mesh's node.

A worker claims chunks of rows until none is left, and has arrays of its own: accumulators, all ZERO between rows; bits, in words
of 64 columns; a bit for each word, by which words with columns are looked up; and the list of a short row.

With `upper_bound`, rows of a chunk are not apart: they follow one another from where the room of its first row begins. If columns
of a row lie far apart, accumulators would not stay in a cache: then its bits tell the place of each column, which holds the sum.

Source        the dense accumulator of Gustavson (1978); masks as in HSMU-SpGEMM
Index space   workers, as many as there are arrays for
Inputs        see spgemm.cl and masks.mako; chunk_row[c]: the first row of chunk c of n_chunks, chunk_row[n_chunks] all rows;
              claimed: 0
Local memory  none
Result        deterministic: products of a column are added in the order of A's row
</%doc>
#include "spgemm.cl"
#include "prefetch.cl"
#include "unaligned.cl"
% if listed:
#include "listed_rows.cl"
% endif
% if short:
#include "column_places.cl"
% endif
<%def name="ahead(whole)">
                    if (a + ${2 * distance} < a_stop) {
                        PREFETCH_LINE(b_indptr + a_indices[a + ${2 * distance}])
                        const I soon = a_indices[a + ${distance}], at = b_indptr[soon];
                        const I at_end = ${"b_indptr[soon + 1]" if whole else "at + 1"};
                        for (I j = at; j < at_end; j += 16) {
                            PREFETCH_LINE(b_indices + j)
% if not symbolic:
                            PREFETCH_LINE(b_data + j)
                            PREFETCH_LINE(b_data + j + 8)
% endif
                        }
                    }
</%def>\

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPGEMM_PARAMETERS,
    const uint n_chunks, global const long *restrict chunk_row, volatile global uint *restrict claimed,
    const ulong n_words, const ulong b_nnz, global const uint *restrict products,
    global uint *restrict all_columns
% if not symbolic:
    , global T *restrict all_values, global T *restrict all_accumulators
% endif
% if not values_only:
    , global ulong *restrict all_bits, global const uint *restrict b_words, global const ulong *restrict b_masks
% endif
    , global const uint *restrict b_n_words)
{
    uint chunk = atomic_inc(claimed);
    if (chunk >= n_chunks)
        return;
    global uint *restrict columns = all_columns + get_global_id(0) * ${2 * room};
    global uint *restrict places = columns + ${room};
    // The columns of the products of a short row of C are read as whole vectors, elements behind the last product included.
    for (uint i = 0; i < ${room}; ++i)
        columns[i] = 0;
% if not symbolic:
    global T *restrict values = all_values + get_global_id(0) * ${room};
    global T *restrict accumulator = all_accumulators + get_global_id(0) * n_words * 64;
    for (ulong i = 0; i < n_words * 64; ++i)
        accumulator[i] = ZERO;
% endif
% if not values_only:
    const ulong n_groups = (n_words + 63) / 64;
    global ulong *restrict bits = all_bits + get_global_id(0) * (${2 if upper_bound else 1} * n_words + n_groups);
    global ulong *restrict word_bits = bits + n_words;
% if upper_bound:
    global ulong *restrict first_places = word_bits + n_groups;
% endif
    for (ulong i = 0; i < n_words + n_groups; ++i)
        bits[i] = 0;
% endif

    for (; chunk < n_chunks; chunk = atomic_inc(claimed)) {
% if listed:
        const ulong first_slot = rows_before(rows + first, n_rows, chunk_row[chunk]);
        const ulong last_slot = rows_before(rows + first, n_rows, chunk_row[chunk + 1]);
% else:
        const ulong first_slot = chunk_row[chunk], last_slot = chunk_row[chunk + 1];
        const I a_stop = a_indptr[last_slot];
% if not symbolic:
        const C_INDEX chunk_end = c_indptr[last_slot];
% endif
% endif
% if upper_bound:
        // The rows of C of a chunk follow one another in the memory of the chunk, without gaps.
        C_INDEX next_place = c_indptr[chunk_row[chunk]];
% endif
        for (ulong slot = first_slot; slot < last_slot; ++slot) {
            const ulong row = SPGEMM_ROW(slot);
            const I a_begin = a_indptr[row], a_end = a_indptr[row + 1];
% if listed:
            const I a_stop = a_end;
% endif
% if upper_bound:
            C_INDEX place = next_place;
% elif not symbolic:
            C_INDEX place = c_indptr[row];
% endif
% if not values_only:
            // repeats: whether the row of A has the columns of the row of A before it, all of them shifted by 0 or by 1.
            I shift = 0;
            bool repeats = false;
            if (${"slot > first_slot && SPGEMM_ROW(slot - 1) + 1 == row" if listed else "slot > first_slot"}) {
                const I length = a_end - a_begin;
                if (length && a_begin - a_indptr[row - 1] == length) {
                    shift = a_indices[a_begin] - a_indices[a_begin - length];
                    repeats = shift == 0 || shift == 1;
                    for (I a = a_begin; repeats && a < a_end; ++a) {
                        const I k = a_indices[a];
                        repeats = k - a_indices[a - length] == shift && (shift == 0 || b_n_words[k] & 2);
                    }
                }
            }
% if symbolic:
            if (repeats) {
                counts[row] = counts[row - 1];
                continue;
            }
% endif
% endif
% if short:
            const uint n_products = products[row];
            if (${'' if symbolic else '!repeats && '}n_products <= 32) {
                uint n = 0;
                for (I a = a_begin; a < a_end; ++a) {
${ahead(False)}\
                    const I k = a_indices[a];
                    const ulong begin = b_indptr[k];
                    const uint length = (uint)(b_indptr[k + 1] - b_indptr[k]);
% if not symbolic:
                    const T factor = from_a(a_data[a]);
% endif
                    if (begin + (length + 7) / 8 * 8 <= b_nnz) {
                        for (uint j = 0; j < length; j += 8) {
                            for (uint i = 0; i < 8; ++i)
                                columns[n + j + i] = (uint)b_indices[begin + j + i];
% if not symbolic:
                            for (uint i = 0; i < 8; ++i)
                                values[n + j + i] = MULTIPLY(factor, from_x(b_data[begin + j + i]));
% endif
                        }
                    } else {
                        for (uint j = 0; j < length; ++j) {
                            columns[n + j] = (uint)b_indices[begin + j];
% if not symbolic:
                            values[n + j] = MULTIPLY(factor, from_x(b_data[begin + j]));
% endif
                        }
                    }
                    n += length;
                }
                const uint present = n <= 16 ? column_places_16(columns, n, places) : column_places_32(columns, n, places);
                const uint count = (uint)popcount(present);
% if symbolic or upper_bound:
                counts[row] = count;
% endif
% if not symbolic:
                // Values of the row of C are cleared sixteen at a time where only rows of C that are written later lie behind.
                const uint cleared = (count + 15) / 16 * 16;
                if (place + (C_INDEX)cleared <= ${"c_indptr[row + 1]" if listed else "chunk_end"}) {
                    for (uint i = 0; i < cleared; i += 16)
                        for (uint j = 0; j < 16; ++j)
                            c_data[place + i + j] = ZERO;
                } else {
                    for (uint i = 0; i < count; ++i)
                        c_data[place + i] = ZERO;
                }
                for (uint i = 0; i < n; ++i) {
                    const C_INDEX to = place + places[i];
                    c_indices[to] = (C_INDEX)columns[i];
                    c_data[to] = ADD(c_data[to], values[i]);
                }
% endif
% if upper_bound:
                next_place = place + (C_INDEX)count;
% endif
                continue;
            }
% endif
% if not values_only:
            uint lowest = UINT_MAX, highest = 0;
% endif
% if upper_bound:
            // The row of C is taken to span columns from the first of its first row of B to the last of its last row of B.
            const I head = a_begin < a_end ? b_indptr[a_indices[a_begin]] : 0;
            const I tail = a_begin < a_end ? b_indptr[a_indices[a_end - 1] + 1] : 0;
            if (!repeats && head < tail && b_indices[tail - 1] - b_indices[head] >= ${far}) {
                for (I a = a_begin; a < a_end; ++a) {
${ahead(True)}\
                    const I k = a_indices[a];
                    for (I j = b_indptr[k], end = b_indptr[k + 1]; j < end; ++j) {
                        const COLUMN column = (COLUMN)b_indices[j];
                        const uint word = (uint)(column >> 6);
                        bits[word] |= 1ul << (column & 63);
                        word_bits[word >> 6] |= 1ul << (word & 63);
                    }
                }
                C_INDEX end = place;
                for (ulong group = 0; group < n_groups; ++group) {
                    ulong words = word_bits[group];
                    if (!words)
                        continue;
                    word_bits[group] = 0;
                    do {
                        const ulong word = group * 64 + popcount((words & -words) - 1);
                        words &= words - 1;
                        ulong mask = bits[word];
                        first_places[word] = (ulong)end;
                        do {
                            c_indices[end] = (C_INDEX)(word * 64 + popcount((mask & -mask) - 1));
                            c_data[end] = ZERO;
                            mask &= mask - 1;
                            ++end;
                        } while (mask);
                    } while (words);
                }
                for (I a = a_begin; a < a_end; ++a) {
                    const I k = a_indices[a];
                    const T factor = from_a(a_data[a]);
                    for (I j = b_indptr[k], end = b_indptr[k + 1]; j < end; ++j) {
                        const COLUMN column = (COLUMN)b_indices[j];
                        const uint word = (uint)(column >> 6);
                        const ulong to = first_places[word] + popcount(bits[word] & ((1ul << (column & 63)) - 1));
                        c_data[to] = ADD(c_data[to], MULTIPLY(factor, from_x(b_data[j])));
                    }
                }
                for (C_INDEX entry = place; entry < end; ++entry)
                    bits[c_indices[entry] >> 6] = 0;
                counts[row] = (uint)(end - place);
                next_place = end;
                continue;
            }
% endif
            // n_alike: the number of consecutive rows of B that have the same columns and are added together.
            uint n_alike = 1;
            for (I a = a_begin; a < a_end; a += (I)n_alike) {
                if (${"" if values_only else "!repeats && "}n_alike == 1) {
${ahead(True)}\
                }
                const I k = a_indices[a];
                const I begin = b_indptr[k];
                const I length = b_indptr[k + 1] - begin;
                n_alike = 1;
                while (n_alike < ${block} && a + (I)n_alike < a_end && a_indices[a + (I)n_alike] == k + (I)n_alike && b_n_words[k + (I)n_alike] & 1)
                    ++n_alike;
% if not values_only:
                // Columns of a row of B are set one by one if the row is short (bit masks are not read) or its masks are many.
                bool by_columns = ${"false" if symbolic else "repeats"};
                if (length && !by_columns) {
                    lowest = min(lowest, (uint)(b_indices[begin] >> 6));
                    highest = max(highest, (uint)(b_indices[begin + length - 1] >> 6));
                    by_columns = length <= ${few} || b_n_words[k] > 3 * (uint)length;
                    if (by_columns) {
                        for (I j = begin; j < begin + length; ++j) {
                            const COLUMN column = (COLUMN)b_indices[j];
                            const uint word = (uint)(column >> 6);
                            bits[word] |= 1ul << (column & 63);
                            word_bits[word >> 6] |= 1ul << (word & 63);
                        }
                    } else {
                        const I n = (I)(b_n_words[k] / 4);
                        for (I j = begin; j < begin + n; ++j) {
                            const uint word = b_words[j];
                            bits[word] |= b_masks[j];
                            word_bits[word >> 6] |= 1ul << (word & 63);
                        }
                    }
                }
% endif
% if not symbolic:
                const T factor_0 = from_a(a_data[a]);
                if (n_alike == 1) {
                    for (I j = begin; j < begin + length; ++j) {
                        const COLUMN column = (COLUMN)b_indices[j];
                        accumulator[column] = ADD(accumulator[column], MULTIPLY(factor_0, from_x(b_data[j])));
                    }
                }
% for n in range(2, block + 1):
                else if (n_alike == ${n}) {
% for u in range(1, n):
                    const T factor_${u} = from_a(a_data[a + ${u}]);
% endfor
                    for (I j = begin; j < begin + length; ++j) {
                        const COLUMN column = (COLUMN)b_indices[j];
                        T sum = accumulator[column];
% for u in range(n):
                        sum = ADD(sum, MULTIPLY(factor_${u}, from_x(b_data[j + ${u} * length])));
% endfor
                        accumulator[column] = sum;
                    }
                }
% endfor
% endif
            }

% if values_only:
            const C_INDEX c_end = c_indptr[row + 1];
            for (; place < c_end; ++place) {
                const C_INDEX column = c_indices[place];
                c_data[place] = accumulator[column];
                accumulator[column] = ZERO;
            }
% else:
% if symbolic:
            uint count = 0;
% else:
% if upper_bound:
            const C_INDEX back = repeats ? (C_INDEX)counts[row - 1] : 0, c_end = place + back;
% else:
            const C_INDEX c_end = c_indptr[row + 1], back = repeats ? place - c_indptr[row - 1] : 0;
% endif
            if (repeats) {
                for (; place < c_end; ++place) {
                    const C_INDEX column = c_indices[place - back] + (C_INDEX)shift;
                    c_indices[place] = column;
                    c_data[place] = accumulator[column];
                    accumulator[column] = ZERO;
                }
% if upper_bound:
                counts[row] = (uint)back;
                next_place = place;
% endif
                continue;
            }
% endif
            for (ulong group = lowest >> 6; group <= highest >> 6; ++group) {
                ulong words = word_bits[group];
                if (!words)
                    continue;
                word_bits[group] = 0;
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
% elif upper_bound:
            counts[row] = (uint)(place - next_place);
            next_place = place;
% endif
% endif
        }
    }
}
