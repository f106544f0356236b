<%doc>
Is this a CSR structure, are its rows sorted, are their columns unique, how long is the longest, how many columns are neighbours?
Trusts nothing but the arrays' lengths.

Index space   any number of work-groups; work-items take adjacent rows and entries each, where in_chunks is not 0, or in turn
Inputs        indptr: n_rows + 1; indices: n_entries; both unchecked
Output        counts[8 * group + i], to be summed over the groups: 0 rows whose indptr decreases, 1 columns out of range,
              2 entries whose column is below its predecessor's, less those that begin a row; 3 the same for "not above";
              from group 0 alone: 4 indptr[0], 5 indptr[n_rows]; 6 entries whose column is the
              one behind its predecessor's; and of each group's rows the longest's length: 7
Local memory  work_group * sizeof(long)
Result        exact. Counts 2 and 3 mean something where 0 is zero: then rows that hold entries begin at different entries, so
              that what falls at a row's beginning can be counted by row and taken away.
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const I n_cols, const I n_entries, const uint in_chunks,
    global const I *restrict indptr, global const I *restrict indices, global long *restrict counts)
{
    local long box[${work_group}];
    long decreasing = 0, outside = 0, falls = 0, not_rises = 0, longest = 0, adjacent = 0;

    const ulong item = get_global_id(0), items = get_global_size(0), step = in_chunks ? 1 : items;
    const ulong entries = in_chunks ? (n_entries + items - 1) / items : n_entries;
    const ulong rows = in_chunks ? (n_rows + items - 1) / items : n_rows;
    const ulong first_entry = in_chunks ? item * entries : item, first_row = in_chunks ? item * rows : item;
    for (ulong k = first_entry; k < min(first_entry + entries, (ulong)n_entries); k += step) {
        const I column = indices[k];
        outside += column < 0 || column >= n_cols;
        if (k > 0) {
            falls += column < indices[k - 1];
            not_rises += column <= indices[k - 1];
            adjacent += column > 0 && column - 1 == indices[k - 1];
        }
    }
    for (ulong row = first_row; row < min(first_row + rows, (ulong)n_rows); row += step) {
        const I begin = indptr[row];
        decreasing += indptr[row + 1] < begin;
        longest = max(longest, (long)indptr[row + 1] - begin);
        if (indptr[row + 1] > begin && begin > 0 && begin < n_entries) {
            falls -= indices[begin] < indices[begin - 1];
            not_rises -= indices[begin] <= indices[begin - 1];
        }
    }
    decreasing = group_reduce_add(box, decreasing);
    outside = group_reduce_add(box, outside);
    falls = group_reduce_add(box, falls);
    not_rises = group_reduce_add(box, not_rises);
    adjacent = group_reduce_add(box, adjacent);
    longest = -group_reduce_min(box, -longest);
    if (get_local_id(0) == 0) {
        global long *out = counts + 8 * get_group_id(0);
        out[0] = decreasing;
        out[1] = outside;
        out[2] = falls;
        out[3] = not_rises;
        out[4] = get_group_id(0) == 0 ? indptr[0] : 0;
        out[5] = get_group_id(0) == 0 ? indptr[n_rows] : 0;
        out[6] = adjacent;
        out[7] = longest;
    }
}
