<%doc>
The values of a sparse matrix at given places (row, column); 0 if there is no entry, the sum of duplicates if there are several.

Source        own
Index space   a work-item for each of n places
Inputs        a valid structure; rows are searched if is_sorted says that their columns ascend, else read through. Place i is (i
              / n_columns, i % n_columns) of a matrix of places, and the axes tell its row and column
Local memory  none
Result        duplicates are added in their order, so deterministic
</%doc>
#include "axis.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_columns, AXIS(row), AXIS(column), const uint is_sorted,
    global const I *restrict indptr, global const I *restrict indices, global const V *restrict values,
    global V *restrict out)
{
    const ulong i = get_global_id(0);
    if (i >= n)
        return;
    const ulong r = i < n_columns ? 0 : i / n_columns, c = i - r * n_columns;
    const I row = AXIS_AT(row, (long)r, (long)c), column = AXIS_AT(column, (long)r, (long)c);
    I k = indptr[row], end = indptr[row + 1];
    if (is_sorted) {
        I after = end;
        while (k < after) {
            const I middle = k + (after - k) / 2;
            if (indices[middle] < column)
                k = middle + 1;
            else
                after = middle;
        }
    }
    V sum = 0;
    for (; k < end && (!is_sorted || indices[k] == column); ++k)
        if (indices[k] == column)
            sum = SUM(sum, values[k]);
    out[i] = sum;
}
