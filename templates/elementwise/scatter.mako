<%doc>
Add the entries of a sparse matrix to a dense one, in place.

Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        a valid structure, whose rows may be unsorted and hold duplicates; dense: C-contiguous, of the same shape
Local memory  none
Result        the entries of a row are added in their order, so deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong stride, const ulong step, const ulong span, const ulong n_columns,
    global const I *restrict indptr, global const I *restrict indices, global const A_VALUE *restrict values,
    global C_VALUE *restrict dense)
{
    const ulong begin = get_global_id(0) * stride, end = min(n_rows, begin + span);
    for (ulong row = begin; row < end; row += step) {
        global C_VALUE *of_row = dense + row * n_columns;
        for (I k = indptr[row]; k < indptr[row + 1]; ++k)
            of_row[indices[k]] = operate(of_row[indices[k]], from_a(values[k]));
    }
}
