<%doc>
The values of 1 - gain D^-1 A for a matrix A, its diagonal D and the damping factor gain: a step of the Jacobi method, to smooth
prolongators with.

Source        Vanek, Mandel and Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
              problems"
Index space   a work-group takes `tile` entries side by side; its work-items take neighbours in turn
Inputs        a valid structure without duplicates; inverse: of the diagonal, 0 for rows that are not smoothed; first: the column
              of the first row's diagonal entry, past all columns if A lacks the columns of the diagonal
Output        result: a value for each entry
Local memory  none
Result        deterministic
</%doc>
#include "row_of.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong tile, const I n_rows, const I first, const R gain,
    global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global const T *restrict inverse, global T *restrict result)
{
    const ulong begin = get_group_id(0) * tile + get_local_id(0), end = min(n, get_group_id(0) * tile + tile);
    I row = 0;
    ulong row_end = 0;
    for (ulong at = begin; at < end; at += ${work_group}) {
        if (at >= row_end) {
            row = row_of(indptr, row, n_rows - 1, at == begin ? n_rows / 2 + 1 : 1, (I)at);
            row_end = indptr[row + 1];
        }
        result[at] = of_real(indices[at] - row == first) - times(inverse[row], values[at]) * gain;
    }
}
