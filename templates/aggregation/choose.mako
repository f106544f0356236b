<%doc>
A step to the maximal independent set of distance 2 of a graph that is first in an order of the nodes: a node is in the set if no
earlier node within two edges is.

Source        Bell, Dalton and Olson, "Exposing fine-grained parallelism in algebraic multigrid methods"; here the order is
              fixed, so that the set is one that a single thread finds by going through the nodes
Index space   `serial`: one work-item, which decides all nodes; else work-items that stride over the nodes: a step of all nodes
Inputs        a valid structure; rank: the place of each block of 1 << shift adjacent nodes in the order; within a block nodes
              ascend. `serial`: order, the block at each place. state: 0 not in the set, 1 in it, 2 undecided
Output        `serial`: state; else after, the state after the step, and how many are undecided if counts is not 0
Local memory  none
Result        exact; the same set whatever the steps
</%doc>
% if not serial:
bool comes_before(global const uint *rank, const uint shift, const I a, const I b)
{
    const uint of_a = rank[a >> shift], of_b = rank[b >> shift];
    return of_a < of_b || (of_a == of_b && a < b);
}

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
% if serial:
void ${name}(
    const ulong n, const uint n_blocks, const uint shift, global const uint *restrict order,
    global const I *restrict indptr, global const I *restrict indices, global uint *restrict state)
{
    for (uint place = 0; place < n_blocks; ++place) {
        const ulong first = (ulong)order[place] << shift, last = min(n, first + (1ul << shift));
        for (ulong node = first; node < last; ++node) {
            if (state[node] != 2)
                continue;
            bool is_near = false;
            const I stop = indptr[node + 1];
            for (I k = indptr[node]; k < stop && !is_near; ++k) {
                const I near = indices[k];
                if (near == (I)node)
                    continue;
                is_near = state[near] == 1;
                const I end = indptr[near + 1];
                for (I m = indptr[near]; m < end && !is_near; ++m)
                    is_near = state[indices[m]] == 1;
            }
            state[node] = !is_near;
        }
    }
}
% else:
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint shift, const uint counts,
    global const uint *restrict rank, global const I *restrict indptr, global const I *restrict indices,
    global const uint *restrict state, global uint *restrict after, global uint *restrict undecided)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong at = begin; at < end; at += step) {
        const I node = (I)at;
        uint node_state = state[node];
        if (node_state == 2) {
            bool waits = false, is_near = false;
            const I first = indptr[node], stop = indptr[node + 1];
            for (I k = first; k < stop && !waits; ++k) {
                const I near = indices[k];
                const uint is = state[near];
                if (near != node && is != 0 && comes_before(rank, shift, near, node)) {
                    waits = is == 2;
                    is_near |= is == 1;
                }
            }
            for (I k = first; k < stop && !waits && !is_near; ++k) {
                const I near = indices[k];
                if (near == node)
                    continue;
                const I last = indptr[near + 1];
                for (I m = indptr[near]; m < last; ++m) {
                    const I far = indices[m];
                    const uint is = state[far];
                    if (far != node && is != 0 && comes_before(rank, shift, far, node)) {
                        waits |= is == 2;
                        is_near |= is == 1;
                    }
                }
            }
            node_state = is_near ? 0 : waits ? 2 : 1;
            if (counts && node_state == 2)
                atomic_inc(undecided);
        }
        after[node] = node_state;
    }
}
% endif
