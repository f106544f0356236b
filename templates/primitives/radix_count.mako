<%doc>
The number of entries of each tile with each digit: counts[digit * n_tiles + tile], with `few` counts[tile * 2 ** bits + digit].
The first part of a pass of a radix sort.

Source        Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs" (the radix sort that Dalton
              et al. use)
Index space   a work-group for each 2^tile_bits adjacent tiles of `size` adjacent entries: their counts leave side by side
Inputs        words: keys in any order; the digit is `bits` bits of a word from bit shift on, after the bits of flip are inverted
Local memory  2^(tile_bits + bits) counters, an argument
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_tiles, const uint bits, const ulong size, const uint tile_bits, const uint few,
    const uint shift, const ulong flip, global const ${word} *restrict words, global I *restrict counts,
    local uint *restrict digit_counts)
{
    const uint me = get_local_id(0), mask = (1u << bits) - 1, tiles = 1u << tile_bits;
    const ${word} flipped = (${word})flip;
    for (uint i = me; i < tiles << bits; i += ${work_group})
        digit_counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong first = (ulong)get_group_id(0) * tiles;
    for (uint tile = 0; tile < tiles && first + tile < n_tiles; ++tile) {
        local uint *of_tile = digit_counts + (tile << bits);
        ulong begin = (first + tile) * size;
        const ulong end = min(begin + size, n);
        for (; begin + ${unroll * work_group} <= end; begin += ${unroll * work_group}) {
% for i in range(unroll):
            const ${word} word_${i} = words[begin + ${i * work_group} + me];
% endfor
% for i in range(unroll):
            atomic_inc(of_tile + ((uint)((word_${i} ^ flipped) >> shift) & mask));
% endfor
        }
        for (ulong k = begin + me; k < end; k += ${work_group})
            atomic_inc(of_tile + ((uint)((words[k] ^ flipped) >> shift) & mask));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < tiles << bits; i += ${work_group}) {
        const uint digit = i >> tile_bits, tile = i & (tiles - 1);
        const ulong to = few ? ((first + tile) << bits) + digit : digit * n_tiles + first + tile;
        if (first + tile < n_tiles)
            counts[to] = digit_counts[(tile << bits) + digit];
    }
}
