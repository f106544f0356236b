<%doc>
The matrix of the nodes of a graph from a matrix with a block for each pair of nodes: an entry is the Frobenius norm of a block.

Index space   work-items that stride over the nodes and the end, or take adjacent ones: `spread` says which
Inputs        a valid structure of n * block rows, sorted; each block of block x block entries is stored whole
Output        node_indptr, node_indices, norms
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong block,
    global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global I *restrict node_indptr, global I *restrict node_indices, global R *restrict norms)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong node = begin; node < end; node += step) {
        const ulong first = indptr[node * block] / (block * block);
        node_indptr[node] = (I)first;
        if (node == n - 1)
            continue;
        const ulong blocks = (indptr[node * block + 1] - indptr[node * block]) / block;
        for (ulong at = 0; at < blocks; ++at) {
            R sum = 0;
            for (ulong inside = 0; inside < block; ++inside) {
                global const T *row = values + indptr[node * block + inside] + at * block;
                for (ulong column = 0; column < block; ++column)
                    sum += square(row[column]);
            }
            node_indices[first + at] = (I)(indices[indptr[node * block] + at * block] / block);
            norms[first + at] = sqrt(sum);
        }
    }
}
