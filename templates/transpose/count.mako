<%doc>
How many entries each column has, and for each entry how many of its column were counted before it: its rank.

Source        the first step of SpTRANS: Ji et al., "Segmented merge", Section 4.2
Index space   any number of work-items, which stride over the entries
Inputs        columns in any order, duplicates allowed; counts: zeros; no column has 2^32 entries
Local memory  none
Result        counts exact; ranks in the order in which atomics happen, so not deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n, global const I *restrict indices, global uint *restrict counts, global uint *restrict ranks)
{
    for (ulong k = get_global_id(0); k < n; k += get_global_size(0))
        ranks[k] = atomic_inc(counts + indices[k]);
}
