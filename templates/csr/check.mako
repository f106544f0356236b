<%doc>
Is this a CSR structure, are its rows sorted, are their columns unique? Trusts nothing but the arrays' lengths.

Index space   any number of work-groups; each strides over rows and entries
Inputs        indptr: n_rows + 1; indices: n_entries; both unchecked
Output        counts[6 * group + i], to be summed over the groups: 0 rows whose indptr decreases, 1 columns out of range,
              2 entries whose column is below its predecessor's, less those that begin a row; 3 the same for "not above";
              and from group 0 alone: 4 indptr[0], 5 indptr[n_rows]
Local memory  work_group * sizeof(long)
Result        exact. Counts 2 and 3 mean something where 0 is zero: then rows that hold entries begin at different entries, so
              that what falls at a row's beginning can be counted by row and taken away.
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const I n_cols, const I n_entries,
    global const I *restrict indptr, global const I *restrict indices, global long *restrict counts)
{
    local long box[${work_group}];
    long decreasing = 0, outside = 0, falls = 0, not_rises = 0;

    for (ulong k = get_global_id(0); k < n_entries; k += get_global_size(0)) {
        const I column = indices[k];
        outside += column < 0 || column >= n_cols;
        if (k > 0) {
            falls += column < indices[k - 1];
            not_rises += column <= indices[k - 1];
        }
    }
    for (ulong row = get_global_id(0); row < n_rows; row += get_global_size(0)) {
        const I begin = indptr[row];
        decreasing += indptr[row + 1] < begin;
        if (indptr[row + 1] > begin && begin > 0 && begin < n_entries) {
            falls -= indices[begin] < indices[begin - 1];
            not_rises -= indices[begin] <= indices[begin - 1];
        }
    }
    decreasing = group_reduce_add(box, decreasing);
    outside = group_reduce_add(box, outside);
    falls = group_reduce_add(box, falls);
    not_rises = group_reduce_add(box, not_rises);
    if (get_local_id(0) == 0) {
        global long *out = counts + 6 * get_group_id(0);
        out[0] = decreasing;
        out[1] = outside;
        out[2] = falls;
        out[3] = not_rises;
        out[4] = get_group_id(0) == 0 ? indptr[0] : 0;
        out[5] = get_group_id(0) == 0 ? indptr[n_rows] : 0;
    }
}
