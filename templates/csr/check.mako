<%doc>
The check of a CSR structure: is it valid, are its rows sorted, are columns unique, how long is the longest row, how many columns
are neighbours? The kernel trusts nothing but the arrays' lengths.

Index space   any number of work-groups; work-items take adjacent rows and entries each, where in_chunks is not 0, or in turn
Inputs        indptr: n_rows + 1; indices: n_entries; both unchecked
Output        counts: of each group the numbers COUNT_..., to be summed over the groups. DECREASING: rows whose indptr decreases.
              OUTSIDE: columns out of range. FALLS: entries whose column is below its predecessor's, but not the first of a row;
              NOT_RISES: the same for "not above". FIRST, LAST: indptr[0] and indptr[n_rows], from group 0 alone. ADJACENT:
              entries whose column is next to its predecessor's. Not to be summed: LONGEST, the longest of the group's rows.
Local memory  work_group * sizeof(long)
Result        exact. FALLS and NOT_RISES are valid if DECREASING is zero: then rows with entries begin at different entries,
              so that the falls at the beginnings of rows are counted by row and subtracted.
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const I n_cols, const I n_entries, const uint in_chunks,
    global const I *restrict indptr, global const I *restrict indices, global long *restrict counts)
{
    SHARED long box[${work_group}];
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
        global long *out = counts + COUNT_ALL * get_group_id(0);
        out[COUNT_DECREASING] = decreasing;
        out[COUNT_OUTSIDE] = outside;
        out[COUNT_FALLS] = falls;
        out[COUNT_NOT_RISES] = not_rises;
        out[COUNT_FIRST] = get_group_id(0) == 0 ? indptr[0] : 0;
        out[COUNT_LAST] = get_group_id(0) == 0 ? indptr[n_rows] : 0;
        out[COUNT_ADJACENT] = adjacent;
        out[COUNT_LONGEST] = longest;
    }
}
