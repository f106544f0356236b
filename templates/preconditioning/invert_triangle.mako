<%doc>
The incomplete sparse approximate inverse of a triangular matrix, in its own pattern: the product of a row of the inverse and the
matrix is a row of the identity, in the pattern of the row. The entries of a row solve a small triangular system, which is
eliminated where the row is stored.

Source        Anzt, Huckle, Bräckle and Dongarra, "Incomplete sparse approximate inverses for parallel preconditioning"
Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        indptr, indices, values: of n rows, canonical; each row ends (upper: begins) with its diagonal entry, which `unit`
              takes for 1, whatever is stored
Output        inverse: the values of the inverse
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, global const I *restrict indptr,
    global const I *restrict indices, global const T *restrict values, global T *restrict inverse)
{
    const ulong first_row = get_global_id(0) * stride, last_row = min(n, first_row + span);
    for (ulong row = first_row; row < last_row; row += step) {
        const I begin = indptr[row], end = indptr[row + 1];
        for (I k = begin; k < end; ++k)
            inverse[k] = ZERO;
        inverse[${"begin" if upper else "end - 1"}] = of_real(1);
        // From the diagonal on, an entry is final once those before it were multiplied by their rows of the matrix.
% if upper:
        for (I k = begin; k < end; ++k) {
            const I other = indices[k], diagonal = indptr[other], last = indptr[other + 1];
% else:
        for (I k = end - 1; k >= begin; --k) {
            const I other = indices[k], diagonal = indptr[other + 1] - 1;
% endif
            const T entry = ${"inverse[k]" if unit else "quotient(inverse[k], values[diagonal])"};
            inverse[k] = entry;
% if upper:
            I at = k + 1;
            for (I m = diagonal + 1; m < last; ++m) {
                while (at < end && indices[at] < indices[m])
                    ++at;
                if (at < end && indices[at] == indices[m])
% else:
            I at = begin;
            for (I m = indptr[other]; m < diagonal; ++m) {
                while (at < k && indices[at] < indices[m])
                    ++at;
                if (at < k && indices[at] == indices[m])
% endif
                    inverse[at] -= times(entry, values[m]);
            }
        }
    }
}
