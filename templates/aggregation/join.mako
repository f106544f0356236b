<%doc>
Which aggregate each node joins. `near`: that of its root, if it is one or a neighbour is. Else: nodes that joined none join the
aggregate that most of their neighbours are in, of several the one with the smallest number.

Source        Bell, Dalton and Olson, "Exposing fine-grained parallelism in algebraic multigrid methods"
Index space   work-items that stride over the nodes, or take adjacent ones: `spread` says which
Inputs        a valid structure. `near`: state, 2 for roots, and the number of each root; else `joined` of the step before
Output        joined: the aggregate, or -1. `near` not: has_joined, 1 or 0. Only the first of many neighbours are counted
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict indptr, global const I *restrict indices,
% if near:
    global const uint *restrict state, global const I *restrict number, global I *restrict joined)
% else:
    global const I *restrict before, global I *restrict joined, global I *restrict has_joined)
% endif
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong node = begin; node < end; node += step) {
        const I first = indptr[node], stop = indptr[node + 1];
% if near:
        I found = state[node] == 2 ? number[node] : (I)(-1);
        for (I k = first; k < stop && found < 0; ++k) {
            const I other = indices[k];
            if (state[other] == 2)
                found = number[other];
        }
        joined[node] = found;
% else:
        I found = before[node];
        if (found < 0) {
            const I few = stop - first < ${most} ? stop : first + ${most};
            I largest = 0;
            for (I k = first; k < few; ++k) {
                const I candidate = before[indices[k]];
                I count = 0;
                for (I m = first; m < stop && candidate >= 0; ++m)
                    count += before[indices[m]] == candidate;
                if (count > largest || (count == largest && count > 0 && candidate < found)) {
                    largest = count;
                    found = candidate;
                }
            }
            for (I k = few; k < stop && found < 0; ++k)
                found = before[indices[k]];
        }
        joined[node] = found;
        has_joined[node] = found >= 0;
% endif
    }
}
