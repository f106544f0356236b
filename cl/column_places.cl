// Where the products of a short row go: in its row of C, each column stands after as many others as are smaller.
//
// column_places_16, column_places_32(columns, n, places): places[i] becomes the number of different columns below columns[i], for
// i < n <= 16 or 32. Returned are bits of which each stands for a column. Both arrays have room for 16 or 32; columns behind n are
// overwritten. A column is below UINT_MAX. In the symbolic phase the bits are all: no place is told.
#define LANES_16 ((uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))

// By components: halves of vectors are shuffles, of which Oclgrind says that they are uninitialised.
uint any_of_16(const uint16 bits)
{
    return bits.s0 | bits.s1 | bits.s2 | bits.s3 | bits.s4 | bits.s5 | bits.s6 | bits.s7 |
           bits.s8 | bits.s9 | bits.sa | bits.sb | bits.sc | bits.sd | bits.se | bits.sf;
}

uint column_places_16(global uint *columns, const uint n, global uint *places)
{
    const int16 is = LANES_16 < n;
    const uint16 column = vload16(0, columns) | as_uint16(~is);
    vstore16(column, 0, columns);
    // Equal columns have as many smaller ones, with repetition: so many bits stand before theirs.
    uint16 smaller = 0;
#pragma unroll
    for (uint i = 0; i < 16; ++i)
        smaller -= as_uint16(column > (uint16)(columns[i]));
    const uint present = any_of_16(((uint16)(1) << smaller) & as_uint16(is));
#if !SYMBOLIC
    vstore16(popcount(present & (((uint16)(1) << smaller) - 1)), 0, places);
#endif
    return present;
}

uint column_places_32(global uint *columns, const uint n, global uint *places)
{
    const int16 is_0 = LANES_16 < n, is_1 = LANES_16 + 16 < n;
    const uint16 column_0 = vload16(0, columns) | as_uint16(~is_0);
    const uint16 column_1 = vload16(1, columns) | as_uint16(~is_1);
    vstore16(column_0, 0, columns);
    vstore16(column_1, 1, columns);
    uint16 smaller_0 = 0, smaller_1 = 0;
#pragma unroll
    for (uint i = 0; i < 32; ++i) {
        smaller_0 -= as_uint16(column_0 > (uint16)(columns[i]));
        smaller_1 -= as_uint16(column_1 > (uint16)(columns[i]));
    }
    const uint16 bit_0 = (uint16)(1) << smaller_0, bit_1 = (uint16)(1) << smaller_1;
    const uint present = any_of_16((bit_0 & as_uint16(is_0)) | (bit_1 & as_uint16(is_1)));
#if !SYMBOLIC
    vstore16(popcount(present & (bit_0 - 1)), 0, places);
    vstore16(popcount(present & (bit_1 - 1)), 1, places);
#endif
    return present;
}
