<%doc>
Whether the diagonal of a matrix has a value by which nothing can be divided: a zero, stored or not, or one that is not finite.

Source        none
Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        indptr, indices, values: of n rows, canonical
Output        wrong: 1 if there is such a value, else unchanged
Local memory  none
Result        exact, but a complex value whose magnitude overflows counts as not finite
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, global const I *restrict indptr,
    global const I *restrict indices, global const T *restrict values, global int *wrong)
{
    const ulong first_row = get_global_id(0) * stride, last_row = min(n, first_row + span);
    bool fits = true;
    for (ulong row = first_row; row < last_row; row += step) {
        I begin = indptr[row], end = indptr[row + 1];
        const I last = end;
        while (begin < end) {
            const I middle = begin + (end - begin) / 2;
            if (indices[middle] < (I)row)
                begin = middle + 1;
            else
                end = middle;
        }
        const R size = begin < last && indices[begin] == (I)row ? magnitude(values[begin]) : 0;
        fits = fits && size > 0 && isfinite(size);
    }
    if (!fits)
        atomic_or(wrong, 1);
}
