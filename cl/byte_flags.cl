// A byte for each column that tells whether it is there, 1 or 0, sixteen to a uint4: work-items set those of different columns without
// atomics.
//
// flags_word(flags, i): columns 32 * i to 32 * i + 31 as bits, the first one's as the lowest.

// The lowest bits of four bytes as bits, the lowest byte's as the lowest: each is moved to its place by a shift of its own.
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
