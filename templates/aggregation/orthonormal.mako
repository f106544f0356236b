<%doc>
Orthonormal columns for each aggregate, in place, and the candidates' coefficients (R): a QR factorisation of the candidates' rows
of an aggregate by the modified Gram-Schmidt method. A column that depends on earlier columns becomes 0.

Source        Vanek, Mandel and Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
              problems"
Index space   work-items that stride over the aggregates, or take adjacent ones: `spread` says which
Inputs        pointers, nodes: the nodes of each aggregate; place: how many nodes before a node joined one; a node has
              `block` rows. tolerance: the ratio of a column's norm to its first norm below which it counts as dependent
Output        values: of n_columns a row; coarse: n_columns x n_columns for each aggregate, upper triangular
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong block, const ulong n_columns,
    const R tolerance, global const I *restrict pointers, global const I *restrict nodes, global const I *restrict place,
    global T *restrict values, global T *restrict coarse)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong aggregate = begin; aggregate < end; aggregate += step) {
        const I first = pointers[aggregate], stop = pointers[aggregate + 1];
        global T *factor = coarse + aggregate * n_columns * n_columns;
        for (ulong column = 0; column < n_columns; ++column) {
            R size = 0;
            for (I k = first; k < stop; ++k) {
                global const T *row = values + (ulong)place[nodes[k]] * block * n_columns + column;
                for (ulong inside = 0; inside < block; ++inside)
                    size += square(row[inside * n_columns]);
            }
            const R threshold = tolerance * sqrt(size);
            for (ulong before = 0; before < column; ++before) {
                T product = ZERO;
                for (I k = first; k < stop; ++k) {
                    global const T *row = values + (ulong)place[nodes[k]] * block * n_columns;
                    for (ulong inside = 0; inside < block; ++inside)
                        product += times(conjugate(row[inside * n_columns + before]), row[inside * n_columns + column]);
                }
                for (I k = first; k < stop; ++k) {
                    global T *row = values + (ulong)place[nodes[k]] * block * n_columns;
                    for (ulong inside = 0; inside < block; ++inside)
                        row[inside * n_columns + column] -= times(product, row[inside * n_columns + before]);
                }
                factor[before * n_columns + column] = product;
            }
            size = 0;
            for (I k = first; k < stop; ++k) {
                global const T *row = values + (ulong)place[nodes[k]] * block * n_columns + column;
                for (ulong inside = 0; inside < block; ++inside)
                    size += square(row[inside * n_columns]);
            }
            size = sqrt(size);
            const bool is_new = size > threshold;
            const R scale = is_new ? 1 / size : 0;
            for (I k = first; k < stop; ++k) {
                global T *row = values + (ulong)place[nodes[k]] * block * n_columns + column;
                for (ulong inside = 0; inside < block; ++inside)
                    row[inside * n_columns] *= scale;
            }
            factor[column * n_columns + column] = of_real(is_new ? size : 0);
            for (ulong below = column + 1; below < n_columns; ++below)
                factor[below * n_columns + column] = ZERO;
        }
    }
}
