<%doc>
Marks of a matrix's strong entries: the entries off the diagonal whose square is at least theta^2 |a_ii| |a_jj|.

Source        Vanek, Mandel and Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
              problems"
Index space   a work-group takes `tile` entries side by side; its work-items take neighbours in turn
Inputs        a valid structure; diagonal: the values on A's
Output        strong: 1 for strong entries, else 0
Local memory  none
Result        exact; products are not fused, so the same on all devices for real values
</%doc>
#include "row_of.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong tile, const I n_rows, const R theta,
    global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global const T *restrict diagonal, global uchar *restrict strong)
{
    const ulong begin = get_group_id(0) * tile + get_local_id(0), end = min(n, get_group_id(0) * tile + tile);
    I row = 0;
    ulong row_end = 0;
    for (ulong at = begin; at < end; at += ${work_group}) {
        if (at >= row_end) {
            row = row_of(indptr, row, n_rows - 1, at == begin ? n_rows / 2 + 1 : 1, (I)at);
            row_end = indptr[row + 1];
        }
        const I column = indices[at];
        // |a_ij|^2 / (|a_ii| |a_jj|) is computed as (|a_ij| / |a_ii|) * (|a_ij| / |a_jj|), as squares may overflow.
        const R size = magnitude(values[at]), rows = magnitude(diagonal[row]), columns = magnitude(diagonal[column]);
        strong[at] = column != row && (rows == 0 || columns == 0 || (size / rows) * (size / columns) >= theta * theta);
    }
}
