// The pattern of a small matrix in local memory, a bit for each place: rows of n_words words of 32 columns.
//
// PATTERN_LANES work-items of a work-group take a row of the matrix; PATTERN_LANES divides the work-group size.
//
// put_pattern(bits, first, indptr, indices, n_rows, n_words): stores the pattern of a matrix in canonical format in bits.
//     For each word of the pattern that has entries, put_pattern stores the position of the first of these entries in `first`.
//     put_pattern has barriers, so the whole work-group has to call it.
// place_in(bits, first, column): the position in the matrix's arrays of the entry at bit `column` of a word of the pattern.
// scan_words(bits, first, box, n): first[i] becomes the number of bits set before word i, and first[n] that of all n words.
//     scan_words has barriers, so the whole work-group has to call it; n is at most PATTERN_WORDS.
// word_with(first, n, i): the word that has set bit number i of a pattern.
// column_of(bits, i): the position of set bit number i in a word.
#ifndef PATTERN_WORDS
    #error "pattern_bits.cl needs PATTERN_WORDS: words of a pattern, at most"
#endif
#ifndef PATTERN_LANES
    #error "pattern_bits.cl needs PATTERN_LANES: work-items to a row"
#endif
#ifndef WORK_GROUP
    #error "pattern_bits.cl needs WORK_GROUP: the work-group size"
#endif
#include "group_scan.cl"

void put_pattern(local uint *bits, local uint *first, global const I *indptr, global const I *indices, const uint n_rows, const uint n_words)
{
    const uint me = get_local_id(0);
    for (uint i = me; i < n_rows * n_words; i += WORK_GROUP)
        bits[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint row = me / PATTERN_LANES; row < n_rows; row += WORK_GROUP / PATTERN_LANES) {
        const I begin = indptr[row], end = indptr[row + 1];
        for (I at = begin + (I)(me % PATTERN_LANES); at < end; at += PATTERN_LANES) {
            const uint column = (uint)indices[at], word = row * n_words + column / 32;
            atomic_or(&bits[word], 1u << column % 32);
            if (at == begin || (uint)indices[at - 1] / 32 != column / 32)
                first[word] = (uint)at;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

uint place_in(const uint bits, const uint first, const uint column)
{
    return first + popcount(bits & ((1u << column) - 1));
}

void scan_words(local const uint *bits, local uint *first, local uint *box, const uint n)
{
    const uint me = get_local_id(0), share = (PATTERN_WORDS + WORK_GROUP - 1) / WORK_GROUP;
    const uint begin = min(me * share, n), end = min(begin + share, n);
    uint count = 0;
    for (uint i = begin; i < end; ++i)
        count += popcount(bits[i]);
    uint before = group_scan_add(box, count);
    for (uint i = begin; i < end; ++i) {
        first[i] = before;
        before += popcount(bits[i]);
    }
    if (me == WORK_GROUP - 1)
        first[n] = before;
    barrier(CLK_LOCAL_MEM_FENCE);
}

uint word_with(local const uint *first, const uint n, const uint i)
{
    uint low = 0, high = n;
    while (high - low > 1) {
        const uint middle = (low + high) / 2;
        if (first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint column_of(uint bits, uint i)
{
    uint column = 0;
    // Set bit number i of the word is found by bisection: the lower half of the bits is left out if bit i is not in that half.
    for (uint half_width = 16; half_width; half_width /= 2) {
        const uint n = popcount(bits & ((1u << half_width) - 1));
        if (i >= n) {
            i -= n;
            bits >>= half_width;
            column += half_width;
        }
    }
    return column;
}
