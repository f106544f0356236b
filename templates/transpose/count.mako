<%doc>
How many entries each column has, and each entry's rank: how many entries of the same column were counted before it.

Source        the first step of SpTRANS: Ji et al., "Segmented merge", Section 4.2
Index space   any number of work-items, which stride over the entries
Inputs        columns in any order, duplicates allowed; counts: n_cols + 1 zeros; no column has 2^32 entries
Output        counts[n_cols]: the largest rank
Local memory  a number
Result        counts exact; ranks in the order in which atomics happen, so not deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_cols, global const I *restrict indices, global uint *restrict counts, global uint *restrict ranks)
{
    local uint group_largest;
    const uint me = get_local_id(0);
    if (me == 0)
        group_largest = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint largest = 0;
    for (ulong k = get_global_id(0); k < n; k += get_global_size(0)) {
        const uint rank = atomic_inc(counts + indices[k]);
        ranks[k] = rank;
        largest = max(largest, rank);
    }
    if (largest > 0)
        atomic_max(&group_largest, largest);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0 && group_largest > 0)
        atomic_max(counts + n_cols, group_largest);
}
