<%doc>
Which nodes are in a set, to be counted.

Index space   work-items that stride over the nodes, or take adjacent ones: `spread` says which
Inputs        state: 2 for nodes in the set
Output        is_root: 1 for these, else 0
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, global const uint *restrict state,
    global I *restrict is_root)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong node = begin; node < end; node += step)
        is_root[node] = state[node] == 2;
}
