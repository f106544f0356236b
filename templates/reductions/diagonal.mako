<%doc>
The values on a diagonal of a sparse matrix; duplicates are added up.

Index space   work-items that stride over the places of the diagonal, or take adjacent ones: `spread` says which
Inputs        a valid structure; rows are searched if is_sorted says that their columns ascend, else read through. Place i is in
              row first_row + i and column first_column + i
Local memory  none
Result        duplicates are added in their order, so deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const I first_row, const I first_column,
    const uint is_sorted, global const I *restrict indptr, global const I *restrict indices, global const V *restrict values,
    global V *restrict diagonal)
{
    const ulong begin = get_global_id(0) * stride, last = min(n, begin + span);
    for (ulong i = begin; i < last; i += step) {
        const I row = first_row + (I)i, column = first_column + (I)i;
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
        diagonal[i] = sum;
    }
}
