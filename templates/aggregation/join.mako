<%doc>
The aggregate that each node joins. `near`: a root, a node of the independent set, and its neighbours join the root's aggregate.
Else: a node without aggregate joins the aggregate of most of its neighbours, of several such aggregates the one with the smallest
number.

Source        Bell, Dalton and Olson, "Exposing fine-grained parallelism in algebraic multigrid methods"
Index space   work-items that stride over the nodes, or take adjacent ones: `spread` says which
Inputs        a valid structure; state: 1 for roots; before: for `near` the number of each root, else `joined` of the first step
Output        joined: the aggregate, or -1; has_joined: 1 or 0. Without `near`, `most` neighbours are counted, at most
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint near,
    global const I *restrict indptr, global const I *restrict indices, global const uint *restrict state,
    global const I *restrict before, global I *restrict joined, global uint *restrict has_joined)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong node = begin; node < end; node += step) {
        const I first = indptr[node], stop = indptr[node + 1];
        I aggregate = near && state[node] == 0 ? (I)(-1) : before[node];
        if (near) {
            for (I k = first; k < stop && aggregate < 0; ++k)
                if (state[indices[k]])
                    aggregate = before[indices[k]];
        } else if (aggregate < 0) {
            const I counted_end = stop - first < ${most} ? stop : first + ${most};
            I largest = 0;
            for (I k = first; k < counted_end; ++k) {
                const I candidate = before[indices[k]];
                I count = 0;
                for (I m = first; m < stop && candidate >= 0; ++m)
                    count += before[indices[m]] == candidate;
                if (count > largest || (count == largest && count > 0 && candidate < aggregate)) {
                    largest = count;
                    aggregate = candidate;
                }
            }
            for (I k = counted_end; k < stop && aggregate < 0; ++k)
                aggregate = before[indices[k]];
        }
        joined[node] = aggregate;
        has_joined[node] = aggregate >= 0;
    }
}
