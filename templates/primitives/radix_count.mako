<%doc>
How many entries of each chunk have each digit: counts[digit * n_chunks + chunk]. The first half of a pass of a radix sort.

Source        Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs" (the radix sort that Dalton et al. use)
Index space   a work-group for each chunk of ${chunk} adjacent entries
Inputs        words: keys in any order; the digit is ${bits} bits of a word from bit shift on, after the bits of flip are inverted
Local memory  ${2 ** bits} counters
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n, const uint shift, const ulong flip, global const ${word} *restrict words, global I *restrict counts)
{
    local uint found[${2 ** bits}];
    const uint me = get_local_id(0);
    const ${word} flipped = (${word})flip;
    for (uint d = me; d < ${2 ** bits}; d += ${work_group})
        found[d] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong begin = (ulong)get_group_id(0) * ${chunk};
    const ulong end = min(begin + ${chunk}, n);
    for (; begin + ${unroll * work_group} <= end; begin += ${unroll * work_group}) {
% for i in range(unroll):
        const ${word} word_${i} = words[begin + ${i * work_group} + me];
% endfor
% for i in range(unroll):
        atomic_inc(found + ((uint)((word_${i} ^ flipped) >> shift) & ${2 ** bits - 1}));
% endfor
    }
    for (ulong k = begin + me; k < end; k += ${work_group})
        atomic_inc(found + ((uint)((words[k] ^ flipped) >> shift) & ${2 ** bits - 1}));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = me; d < ${2 ** bits}; d += ${work_group})
        counts[(ulong)d * get_num_groups(0) + get_group_id(0)] = found[d];
}
