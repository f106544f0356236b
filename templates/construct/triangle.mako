<%doc>
Marks of the entries of a sparse matrix that lie in a triangle: on or below the k-th diagonal or, if `upper`, on or above it.

Index space   a work-group takes `tile` entries side by side; its work-items take neighbours in turn
Inputs        a valid structure, in any order
Output        marks[e]: 1 for entries of the triangle, else 0
Local memory  none
Result        exact
</%doc>
#include "row_of.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong tile, const I n_rows, const long k,
    global const I *restrict indptr, global const I *restrict indices, global uchar *restrict marks)
{
    const ulong begin = get_group_id(0) * tile + get_local_id(0), end = min(n, get_group_id(0) * tile + tile);
    I row = 0;
    ulong row_end = 0;
    for (ulong at = begin; at < end; at += ${work_group}) {
        if (at >= row_end) {
            row = row_of(indptr, row, n_rows - 1, at == begin ? n_rows / 2 + 1 : 1, (I)at);
            row_end = indptr[row + 1];
        }
        const long diagonal = (long)indices[at] - (long)row;
        marks[at] = ${"diagonal >= k" if upper else "diagonal <= k"};
    }
}
