<%doc>
The norm, in each aggregate of nodes, of one candidate (a vector that the coarse levels of AMG have to hold), by one work-item,
which takes the nodes in their order.

Index space   one work-item
Inputs        joined: the aggregate of each of n_nodes nodes, or -1, of n in all; candidate: of `block` rows a node
Output        norms: of each aggregate
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_nodes, const ulong n, const ulong block, global const I *restrict joined, global const T *restrict candidate,
    global T *restrict norms)
{
    for (ulong aggregate = 0; aggregate < n; ++aggregate)
        norms[aggregate] = ZERO;
    for (ulong node = 0; node < n_nodes; ++node) {
        const I aggregate = joined[node];
        if (aggregate < 0)
            continue;
        R size = real_part(norms[aggregate]);
        for (ulong row = node * block; row < (node + 1) * block; ++row)
            size += square(candidate[row]);
        norms[aggregate] = of_real(size);
    }
    for (ulong aggregate = 0; aggregate < n; ++aggregate)
        norms[aggregate] = of_real(sqrt(real_part(norms[aggregate])));
}
