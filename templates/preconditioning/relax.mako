<%doc>
A step of Gauss-Seidel's method for the rows of one colour: each unknown takes the value that solves its row. Rows of a colour do
not depend on each other. A row whose diagonal is 0 keeps its unknown. Duplicates are added up.

Source        Saad, "Iterative Methods for Sparse Linear Systems", 12.4: multicolour Gauss-Seidel
Index space   work-items that stride over the rows of the colour, or take adjacent ones: `spread` says which
Inputs        indptr, indices, values: a valid matrix; rows: by colour; the colour's rows begin at place `first`; b
Output        x: the entries of the colour's rows; others are read
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong first, global const I *restrict rows,
    global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global const T *restrict b, global T *x)
{
    const ulong begin = get_global_id(0) * stride, last = min(n, begin + span);
    for (ulong place = begin; place < last; place += step) {
        const I row = rows[first + place], end = indptr[row + 1];
        T sum = b[row], diagonal = ZERO;
        for (I k = indptr[row]; k < end; ++k) {
            const I column = indices[k];
            const T value = values[k];
            if (column == row)
                diagonal += value;
            else
                sum -= times(value, x[column]);
        }
        if (magnitude(diagonal) > 0)
            x[row] = quotient(sum, diagonal);
    }
}
