<%doc>
One sweep towards the incomplete factors of a matrix, in its own pattern: each entry is computed from the entries of the sweep
before, so that all are computed at the same time. ILU: L, whose diagonal is 1, below the diagonal, and U on and above it. IC: L
alone, from the lower triangle of a Hermitian matrix.

Source        Chow and Patel, "Fine-grained parallel incomplete LU factorization"
Index space   a work-item to a row, striding
Inputs        indptr, indices: of n rows, canonical; values: of the matrix; before: of the factors
Output        after: of the factors
Local memory  none
Result        deterministic
</%doc>
#if ${1 if not hermitian else 0}
T entry_at(global const I *restrict indices, global const T *restrict values, I begin, I end, const I column)
{
    while (begin < end) {
        const I middle = begin + (end - begin) / 2;
        if (indices[middle] < column)
            begin = middle + 1;
        else if (indices[middle] > column)
            end = middle;
        else
            return values[middle];
    }
    return of_real(0);
}
#endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n, global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global const T *restrict before, global T *restrict after)
{
    for (ulong item = get_global_id(0); item < (ulong)n; item += get_global_size(0)) {
        const I row = (I)item, begin = indptr[row], end = indptr[row + 1];
        for (I k = begin; k < end; ++k) {
            const I column = indices[k];
            T sum = values[k];
% if hermitian:
            I at = indptr[column];
            const I last = indptr[column + 1];
            for (I m = begin; m < k; ++m) {
                const I inner = indices[m];
                while (at < last && indices[at] < inner)
                    ++at;
                if (at < last && indices[at] == inner)
                    sum -= times(before[m], conjugate(before[at]));
            }
            // The diagonal entry is the last entry of a row of the lower triangle.
            after[k] = column == row ? of_real(sqrt(real_part(sum))) : quotient(sum, before[last - 1]);
% else:
            for (I m = begin; m < end && indices[m] < min(row, column); ++m) {
                const I inner = indices[m];
                sum -= times(before[m], entry_at(indices, before, indptr[inner], indptr[inner + 1], column));
            }
            after[k] = column < row ? quotient(sum, entry_at(indices, before, indptr[column], indptr[column + 1], column)) : sum;
% endif
        }
    }
}
