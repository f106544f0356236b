<%doc>
The structure of a tentative prolongator, whose values are the candidates (vectors that the coarse levels of AMG have to hold): a
block of values for each node in an aggregate.
`normed`: one candidate, divided by its norm in each aggregate, an input.

Source        Vanek, Mandel and Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
              problems"
Index space   work-items that stride over the unknowns and the end, or take adjacent ones: `spread` says which
Inputs        joined: the aggregate of each node, or -1; place: the number of earlier nodes in an aggregate; candidates: a row for
              each of the `block` unknowns of a node
Output        indptr, indices, values; unless `normed`, members: the aggregates of nodes that joined one
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong block, const ulong n_columns,
    global const I *restrict joined, global const I *restrict place, global const T *restrict candidates,
    global I *restrict indptr, global I *restrict indices, global T *restrict values,
    global ${"const T *restrict norms" if normed else "I *restrict members"})
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong row = begin; row < end; row += step) {
        const ulong node = row / block, inside = row - node * block;
        const bool is_end = row == n - 1;
        const I aggregate = is_end ? (I)(-1) : joined[node];
        const ulong at = ((ulong)place[node] * block + (aggregate < 0 ? 0 : inside)) * n_columns;
        indptr[row] = (I)at;
        if (aggregate >= 0) {
% if normed:
            const R norm = real_part(norms[aggregate]);
            indices[at] = aggregate;
            values[at] = candidates[row] * (norm > 0 ? 1 / norm : 0);
% else:
            for (ulong column = 0; column < n_columns; ++column) {
                indices[at + column] = (I)(aggregate * n_columns + column);
                values[at + column] = candidates[row * n_columns + column];
            }
            if (inside == 0)
                members[place[node]] = aggregate;
% endif
        }
    }
}
