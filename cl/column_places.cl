// The places of a short row's products in its row of C: the place of a product is the number of distinct smaller columns.
//
// column_places_16(columns, n, places): places[i] becomes the number of distinct columns below columns[i], for i < n <= 16.
// column_places_32(columns, n, places): places[i] becomes the number of distinct columns below columns[i], for i < n <= 32.
// column_places_16 and column_places_32 return a word with as many bits set as there are distinct columns.
// The arrays columns and places have room for 16 or 32 numbers; columns behind n are overwritten. A column is below UINT_MAX.
// The symbolic phase of SpGEMM needs the bits of the returned word alone: places are not written.
//
// The vectors of this file have 32 bytes: longer vectors are no arguments or results of functions, built-ins included (quirk 2).
#ifndef SYMBOLIC
    #error "column_places.cl needs SYMBOLIC: 1 in the symbolic phase, else 0"
#endif
#include "vectors.cl"

#define LANES_8 ((uint8)(0, 1, 2, 3, 4, 5, 6, 7))

// Return the bits that any of eight words has: the words are combined one by one, not by halves of the vector (quirk 26).
uint any_of_8(const uint8 bits)
{
    return bits.s0 | bits.s1 | bits.s2 | bits.s3 | bits.s4 | bits.s5 | bits.s6 | bits.s7;
}

// Return eight columns, with UINT_MAX, which is smaller than no column, in place of the columns behind n.
uint8 eight_columns(global uint *columns, const uint block, const uint n)
{
    const uint8 column = vload8(block, columns) | as_uint8(~(LANES_8 + 8 * block < n));
    vstore8(column, block, columns);
    return column;
}

// Return, for each of eight columns, a word with one set bit: bit number n if n columns, duplicates counted, are smaller.
uint8 eight_bits(const uint8 smaller, const uint block, const uint n)
{
    return ((uint8)(1) << smaller) & as_uint8(LANES_8 + 8 * block < n);
}

void eight_places(const uint8 smaller, const uint present, const uint block, global uint *places)
{
    vstore8(popcount(present & (((uint8)(1) << smaller) - 1)), block, places);
}

// Equal columns set the same bit of the word `present`, as equally many columns are smaller than each of them.
// The set bits of the word `present` below the bit of a column count the distinct smaller columns.
uint column_places_16(global uint *columns, const uint n, global uint *places)
{
    const uint8 column_0 = eight_columns(columns, 0, n), column_1 = eight_columns(columns, 1, n);
    uint8 smaller_0 = 0, smaller_1 = 0;
#pragma unroll
    for (uint i = 0; i < 16; ++i) {
        const uint8 other = columns[i];
        smaller_0 -= as_uint8(column_0 > other);
        smaller_1 -= as_uint8(column_1 > other);
    }
    const uint present = any_of_8(eight_bits(smaller_0, 0, n) | eight_bits(smaller_1, 1, n));
#if !SYMBOLIC
    eight_places(smaller_0, present, 0, places);
    eight_places(smaller_1, present, 1, places);
#endif
    return present;
}

uint column_places_32(global uint *columns, const uint n, global uint *places)
{
    const uint8 column_0 = eight_columns(columns, 0, n), column_1 = eight_columns(columns, 1, n);
    const uint8 column_2 = eight_columns(columns, 2, n), column_3 = eight_columns(columns, 3, n);
    uint8 smaller_0 = 0, smaller_1 = 0, smaller_2 = 0, smaller_3 = 0;
#pragma unroll
    for (uint i = 0; i < 32; ++i) {
        const uint8 other = columns[i];
        smaller_0 -= as_uint8(column_0 > other);
        smaller_1 -= as_uint8(column_1 > other);
        smaller_2 -= as_uint8(column_2 > other);
        smaller_3 -= as_uint8(column_3 > other);
    }
    const uint8 bits_01 = eight_bits(smaller_0, 0, n) | eight_bits(smaller_1, 1, n);
    const uint8 bits_23 = eight_bits(smaller_2, 2, n) | eight_bits(smaller_3, 3, n);
    const uint present = any_of_8(bits_01 | bits_23);
#if !SYMBOLIC
    eight_places(smaller_0, present, 0, places);
    eight_places(smaller_1, present, 1, places);
    eight_places(smaller_2, present, 2, places);
    eight_places(smaller_3, present, 3, places);
#endif
    return present;
}
