// Flags of columns, a byte each (1: the row has the column), sixteen in a uint4: work-items set flags without atomics.
//
// flags_word(flags, i): the flags of columns 32 * i to 32 * i + 31 as bits, column 32 * i in the lowest bit.

// Return the lowest bits of the four bytes of a word, packed into four bits: the multiplication shifts each bit to its place.
uint flags_bits(const uint bytes)
{
    return bytes * 0x10204080u >> 28;
}

uint flags_word(local const uint4 *flags, const uint i)
{
    const uint4 even = flags[2 * i], odd = flags[2 * i + 1];
    const uint low = flags_bits(even.x) | flags_bits(even.y) << 4 | flags_bits(even.z) << 8 | flags_bits(even.w) << 12;
    return low | flags_bits(odd.x) << 16 | flags_bits(odd.y) << 20 | flags_bits(odd.z) << 24 | flags_bits(odd.w) << 28;
}
