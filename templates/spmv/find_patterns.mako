<%doc>
The patterns of A's rows: rows are of one pattern if they have equally many entries, at equal distances to the diagonal, in one
order. A pattern's number, below n_patterns, is its slot in a hash table; a slot's row is the one that took the slot.

Source        delta patterns of CSX: Kourtis, Karakasis, Goumas and Koziris, PPoPP 2011; patterns of whole rows: own
Index space   work-items that stride over the rows: `spread` says which
Inputs        indptr, indices: columns in any order, duplicates allowed; rows may be empty, and have at most `width` entries;
              slots: zeros, n_patterns + 1 of them; n is less than 2^32 - 1
Output        numbers: a row's pattern; of each pattern lengths, its entries, and offsets, their differences of column and row, in
              `width` places; slots: 1 + the row of each pattern, or 0, and at the end 1 if there are more patterns than
              slots: then all other output is of no use
Local memory  none
Result        exact, but for the numbers of patterns, which differ from run to run
</%doc>
// Whether two rows of A have the same pattern: `k` and `end` are the one row's entries.
bool are_alike(
    global const I *restrict indptr, global const I *restrict indices, const I row, const ulong k, const ulong end, const I other)
{
    const ulong from = indptr[other];
    if (indptr[other + 1] - from != end - k)
        return false;
    for (ulong j = 0; j < end - k; ++j)
        if (indices[k + j] - row != indices[from + j] - other)
            return false;
    return true;
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint width,
    global const I *restrict indptr, global const I *restrict indices,
    global uchar *restrict numbers, global uchar *restrict lengths, global I *restrict offsets, volatile global uint *restrict slots)
{
    const ulong begin = get_global_id(0) * stride, behind = min(n, begin + span);
    for (ulong i = begin; i < behind; i += step) {
        if (slots[${n_patterns}])
            return;
        const I row = (I)i;
        const ulong k = indptr[row], end = indptr[row + 1];
        uint hash = (uint)(end - k);
        for (ulong j = k; j < end; ++j) {
            hash = (hash ^ (uint)(indices[j] - row)) * 2654435769u;
            hash ^= hash >> 15;
        }
        uint slot = hash & ${n_patterns - 1}, tried = 0;
        for (; tried < ${n_patterns}; ++tried) {
            // A slot that is taken stays as it is: only a slot that seems free needs an atomic operation.
            uint taken = slots[slot];
            if (taken == 0) {
                taken = atomic_cmpxchg(slots + slot, 0u, (uint)i + 1);
                if (taken == 0) {
                    lengths[slot] = (uchar)(end - k);
                    for (ulong j = k; j < end; ++j)
                        offsets[slot * width + (j - k)] = indices[j] - row;
                    break;
                }
            }
            if (are_alike(indptr, indices, row, k, end, (I)(taken - 1)))
                break;
            slot = (slot + 1) & ${n_patterns - 1};
        }
        if (tried == ${n_patterns})
            atomic_xchg(slots + ${n_patterns}, 1u);
        numbers[i] = (uchar)slot;
    }
}
