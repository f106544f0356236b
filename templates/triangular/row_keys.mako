<%doc>
Keys by which the rows of a triangular system are sorted: by level and, within a level, by how many work-items share a row.
With `with_supernodes`, rows that are not the first of their supernode come behind all others.

Index space   any; work-items stride over the rows
Inputs        indptr: of n rows; levels: of each row; n_keys: number of levels, times max_shift + 1. supernodes, with
              `with_supernodes`: see triangular/supernodes
Output        keys: level * (max_shift + 1) + shift, where 2^shift work-items, at most 2^max_shift, have at most entries_per_lane
              entries each; n_keys of rows that come behind all others
Local memory  none. Of one work-item it is the plain kernel
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n, const int max_shift, const long entries_per_lane, const int n_keys, global const I *restrict indptr,
% if with_supernodes:
    global const int *restrict supernodes,
% endif
    global const int *restrict levels, global int *keys)
{
    for (I row = get_global_id(0); row < n; row += get_global_size(0)) {
        const long length = indptr[row + 1] - indptr[row];
        int shift = 0;
        while (shift < max_shift && entries_per_lane << shift < length)
            ++shift;
        const int key = levels[row] * (max_shift + 1) + shift;
        keys[row] = ${"supernodes[row] < 0 ? n_keys : key" if with_supernodes else "key"};
    }
}
