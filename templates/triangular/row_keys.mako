<%doc>
Keys by which the rows of a triangular system are sorted: by level and, within a level, by how many work-items share a row.

Index space   any; work-items stride over the rows
Inputs        indptr: of n rows; levels: of each row
Output        keys: level * (max_shift + 1) + shift, where 2^shift work-items, at most 2^max_shift, have at most entries_per_lane
              entries each; highest: the highest level; 0 before
Local memory  none. Of one work-item it is the plain kernel
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n, const int max_shift, const long entries_per_lane, global const I *restrict indptr,
    global const int *restrict levels, global int *keys, volatile global int *highest)
{
    for (I row = get_global_id(0); row < n; row += get_global_size(0)) {
        const int level = levels[row];
        const long length = indptr[row + 1] - indptr[row];
        int shift = 0;
        while (shift < max_shift && entries_per_lane << shift < length)
            ++shift;
        keys[row] = level * (max_shift + 1) + shift;
        if (level > *highest)
            atomic_max(highest, level);
    }
}
