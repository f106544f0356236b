<%doc>
What is known of each node of a graph before any is chosen: whether it has a neighbour, and how far before it the first one lies.

Index space   work-items that stride over the nodes, or take adjacent ones: `spread` says which
Inputs        a structure in canonical format; entries on the diagonal are no neighbours
Output        state: 1 for nodes with a neighbour, else 0; reach: the number of the node less that of its first neighbour, or 0
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict indptr, global const I *restrict indices, global uint *restrict state, global I *restrict reach)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong node = begin; node < end; node += step) {
        const I begins = indptr[node], length = indptr[node + 1] - begins;
        const I first = length > 0 ? indices[begins] : (I)node;
        state[node] = length > 1 || first != (I)node;
        reach[node] = (I)node - min(first, (I)node);
    }
}
