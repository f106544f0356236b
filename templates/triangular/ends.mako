<%doc>
Whether each row of a triangular matrix stores its diagonal entry once, as its last entry (upper: as its first), and no entry
beyond the diagonal, so that a solution need not compare columns; and which rows continue a supernode: they have the entries of
the row that is solved before them, in their order, and one more, their own diagonal entry. Of some rows, evenly spread, it tells
how far the entries are from the diagonal.

Source        Ng and Peyton, "Block sparse Cholesky algorithms on advanced uniprocessor computers": supernodes
Index space   a work-item to a row, striding
Inputs        indptr, indices: of n rows
Output        counts, 0 before: OTHERS: 1 if a row is otherwise; CONTINUED: rows that continue a supernode; continues: 1 for such
              a row, else 0; both without meaning if a row is otherwise. Then n_samples times max_entries numbers: how far a row's
              entries are from the diagonal, 0 for none; the first is -1 if the row has more entries
Local memory  4; of one work-item, which is the plain kernel, none
Result        exact
</%doc>
#define OTHERS 0
#define CONTINUED 1
#define N_COUNTS 2

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n, global const I *restrict indptr, global const I *restrict indices, global int *continues, global int *counts)
{
% if work_group == 1:
    int continued = 0;
% else:
    local int continued;
    if (get_local_id(0) == 0)
        continued = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
    for (uint sample = get_global_id(0); n && sample < ${n_samples}; sample += get_global_size(0)) {
        // Multiples of the golden ratio, modulo 1, lie evenly.
        const I row = (I)(((ulong)(sample * 2654435769u) * (ulong)n) >> 32), begin = indptr[row], end = indptr[row + 1];
        global int *distances = counts + N_COUNTS + sample * ${max_entries};
        for (I k = begin; k < min(end, begin + ${max_entries}); ++k)
            distances[k - begin] = (int)${"(indices[k] - row)" if upper else "(row - indices[k])"};
        if (end - begin > ${max_entries})
            distances[0] = -1;
    }
    for (ulong item = get_global_id(0); item < (ulong)n; item += get_global_size(0)) {
        const I row = (I)item, begin = indptr[row], end = indptr[row + 1], diagonal = ${"begin" if upper else "end - 1"};
        bool fits = begin < end && indices[diagonal] == row;
        for (I k = begin; fits && k < end; ++k)
            fits = k == diagonal || indices[k] ${">" if upper else "<"} row;
        if (!fits)
            atomic_or(counts + OTHERS, 1);
        bool goes_on = fits && ${"row + 1 < n" if upper else "row > 0"};
        if (goes_on) {
            const I before = ${"end" if upper else "indptr[row - 1]"}, length = end - begin - 1;
            goes_on = ${"indptr[row + 2] - end" if upper else "begin - before"} == length;
            for (I k = 0; goes_on && k < length; ++k)
                goes_on = indices[before + k] == indices[begin${" + 1" if upper else ""} + k];
        }
        continues[row] = goes_on;
        if (goes_on)
% if work_group == 1:
            ++continued;
    }
    if (continued)
        atomic_add(counts + CONTINUED, continued);
% else:
            atomic_inc(&continued);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0 && continued)
        atomic_add(counts + CONTINUED, continued);
% endif
}
