<%doc>
The number of entries of each tile with each digit: counts[digit * n_tiles + tile], with `few` counts[tile * 2 ** bits + digit].
The first part of a pass of a radix sort.

Source        Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs" (the radix sort that Dalton
              et al. use)
Index space   a work-group for each `tiles` adjacent tiles of `tile` adjacent entries: their counts leave side by side
Inputs        words: keys in any order; the digit is `bits` bits of a word from bit shift on, after the bits of flip are inverted
Local memory  `tiles * 2 ** bits` counters
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_tiles, const uint shift, const ulong flip, global const ${word} *restrict words,
    global I *restrict counts)
{
    local uint digit_counts[${tiles * 2 ** bits}];
    const uint me = get_local_id(0);
    const ${word} flipped = (${word})flip;
    for (uint i = me; i < ${tiles * 2 ** bits}; i += ${work_group})
        digit_counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong first = (ulong)get_group_id(0) * ${tiles};
    for (uint tile = 0; tile < ${tiles} && first + tile < n_tiles; ++tile) {
        local uint *of_tile = digit_counts + ${2 ** bits} * tile;
        ulong begin = (first + tile) * ${tile};
        const ulong end = min(begin + ${tile}, n);
        for (; begin + ${unroll * work_group} <= end; begin += ${unroll * work_group}) {
% for i in range(unroll):
            const ${word} word_${i} = words[begin + ${i * work_group} + me];
% endfor
% for i in range(unroll):
            atomic_inc(of_tile + ((uint)((word_${i} ^ flipped) >> shift) & ${2 ** bits - 1}));
% endfor
        }
        for (ulong k = begin + me; k < end; k += ${work_group})
            atomic_inc(of_tile + ((uint)((words[k] ^ flipped) >> shift) & ${2 ** bits - 1}));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < ${tiles * 2 ** bits}; i += ${work_group}) {
        const uint digit = i / ${tiles}, tile = i % ${tiles};
        if (first + tile < n_tiles)
% if few:
            counts[((first + tile) << ${bits}) + digit] = digit_counts[${2 ** bits} * tile + digit];
% else:
            counts[digit * n_tiles + first + tile] = digit_counts[${2 ** bits} * tile + digit];
% endif
    }
}
