<%doc>
The set of `choose` for a symmetric graph, in steps of which each touches only nodes that are decided in it. `count`: how many
nodes before each it waits for. `step`: nodes that wait for none are in the set; nodes within two edges of them are not, and are
waited for no more. What waits for a node of the set is within two edges of it, and so decided.

Source        Kahn, "Topological sorting of large networks"; the set is that of `choose`
Index space   `count`: work-items that stride over the nodes; `step`: a work-group for each node that waits for none, whose
              work-items share the paths from it in teams of `lanes`
Inputs        a valid structure; shift and rank: the order, as for `choose`. A node is waited for once for each path to it of one
              or two edges. ready: three lists of n_nodes places in turns, which counters have the lengths of; the fourth counter
              says whether an edge lacks its mirror image
Output        state, waits; the list of the next turn, and its length; the length of the list of the turn before is 0 again
Local memory  `step`: listed + 1 numbers
Result        exact; lists are in any order
</%doc>
bool comes_before(global const uint *rank, const uint shift, const I a, const I b)
{
    const uint of_a = rank[a >> shift], of_b = rank[b >> shift];
    return of_a < of_b || (of_a == of_b && a < b);
}

% if phase == "step":
void let_go(
    global const uint *rank, const uint shift, const I of, const I node, volatile global uint *waits, global I *ready,
    volatile global uint *counter)
{
    if (comes_before(rank, shift, of, node) && atomic_dec(waits + node) == 1)
        ready[atomic_inc(counter)] = node;
}

void release(
    global const uint *rank, const uint shift, global const I *indptr, global const I *indices, const I node, const uint lane,
    const uint lanes, volatile global uint *waits, global I *ready, volatile global uint *counter)
{
    const I stop = indptr[node + 1];
    for (I k = indptr[node] + lane; k < stop; k += lanes) {
        const I near = indices[k];
        if (near == node)
            continue;
        let_go(rank, shift, node, near, waits, ready, counter);
        const I last = indptr[near + 1];
        for (I m = indptr[near]; m < last; ++m) {
            const I far = indices[m];
            if (far != node && far != near)
                let_go(rank, shift, node, far, waits, ready, counter);
        }
    }
}

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
% if phase == "count":
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint shift, global const uint *restrict rank,
    global const I *restrict indptr, global const I *restrict indices, global const uint *restrict state,
    global uint *restrict waits, global I *restrict ready, volatile global uint *counters)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong at = begin; at < end; at += step) {
        const I node = (I)at, stop = indptr[at + 1];
        uint found = 0, missing = 0;
        for (I k = indptr[at]; k < stop; ++k) {
            const I near = indices[k];
            if (near == node)
                continue;
            found += comes_before(rank, shift, near, node);
            const I last = indptr[near + 1];
            bool is_mirrored = false;
            for (I m = indptr[near]; m < last; ++m) {
                const I far = indices[m];
                is_mirrored |= far == node;
                found += far != node && far != near && comes_before(rank, shift, far, node);
            }
            missing += !is_mirrored;
        }
        waits[at] = found;
        if (found == 0 && state[at] == 1)
            ready[atomic_inc(counters)] = node;
        if (missing)
            atomic_or(counters + 3, 1u);
    }
}
% else:
void ${name}(
    const uint turn, const ulong n_nodes, const uint shift, global const uint *restrict rank, global const I *restrict indptr,
    global const I *restrict indices, volatile global uint *restrict state, volatile global uint *restrict waits,
    global I *restrict ready, volatile global uint *restrict counters)
{
    local uint n_covered;
    local I covered[${listed}];
    const uint lane = get_local_id(0) % ${lanes}, team = get_local_id(0) / ${lanes};
    const uint n = counters[turn], next = turn == 2 ? 0 : turn + 1;
    global const I *own = ready + turn * n_nodes;
    global I *after = ready + next * n_nodes;
    volatile global uint *counter = counters + next;
    if (get_global_id(0) == 0)
        counters[turn == 0 ? 2 : turn - 1] = 0;
    for (uint at = get_group_id(0); at < n; at += get_num_groups(0)) {
        const I node = own[at], stop = indptr[node + 1];
        if (get_local_id(0) == 0) {
            atomic_xchg(state + node, 2u);
            n_covered = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (I k = indptr[node] + team; k < stop; k += ${teams}) {
            const I near = indices[k], first = indptr[near], last = indptr[near + 1];
            // The first of the team takes the neighbour itself, too.
            for (I m = first + (I)lane - ${lanes}; near != node && m < last; m += ${lanes}) {
                if (m < first && lane != 0)
                    continue;
                const I other = m < first ? near : indices[m];
                if (other == node || (other == near && m >= first) || atomic_cmpxchg(state + other, 1u, 0u) != 1)
                    continue;
                const uint place = atomic_inc(&n_covered);
                if (place < ${listed})
                    covered[place] = other;
                else
                    release(rank, shift, indptr, indices, other, 0, 1, waits, after, counter);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint n_listed = min(n_covered, ${listed}u);
        for (uint place = team; place < n_listed; place += ${teams})
            release(rank, shift, indptr, indices, covered[place], lane, ${lanes}, waits, after, counter);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
% endif
