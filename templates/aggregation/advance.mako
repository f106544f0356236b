<%doc>
The set of `choose` for a symmetric graph, in steps of which each touches only nodes that are decided in it. `count`: how many
nodes before each it waits for. `decide`: nodes that wait for none are in the set, and those within two edges of them are not.
`release`: nodes that are decided are waited for no more.

Source        Kahn, "Topological sorting of large networks"; the set is that of `choose`
Index space   `count`: work-items that stride over the nodes; else teams of `lanes` work-items for each node that is listed
Inputs        a valid structure; shift and rank: the order, as for `choose`. A node is waited for once for each path to it of one
              or two edges. counters: two each of nodes that are ready and decided, of which turn says which, and whether an edge
              lacks its mirror image
Output        state, waits; ready: nodes that wait for none, of the next turn; decided
Local memory  none
Result        exact; lists are in any order
</%doc>
bool comes_before(global const uint *rank, const uint shift, const I a, const I b)
{
    const uint of_a = rank[a >> shift], of_b = rank[b >> shift];
    return of_a < of_b || (of_a == of_b && a < b);
}

% if phase == "decide":
void cover(volatile global uint *state, global I *decided, volatile global uint *counter, const I node)
{
    if (atomic_cmpxchg(state + node, 1u, 0u) == 1)
        decided[atomic_inc(counter)] = node;
}

% elif phase == "release":
void let_go(
    global const uint *rank, const uint shift, const I of, const I node, global const uint *state, volatile global uint *waits,
    global I *ready, volatile global uint *counter)
{
    if (comes_before(rank, shift, of, node) && atomic_dec(waits + node) == 1 && state[node] == 1)
        ready[atomic_inc(counter)] = node;
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
            atomic_or(counters + 4, 1u);
    }
}
% else:
void ${name}(
    const uint turn, const uint shift, global const uint *restrict rank, global const I *restrict indptr,
    global const I *restrict indices,
    ${"volatile global" if phase == "decide" else "global const"} uint *restrict state,
% if phase == "decide":
    global const I *restrict ready, global I *restrict decided, volatile global uint *counters)
% else:
    volatile global uint *restrict waits, global const I *restrict decided, global I *restrict ready,
    volatile global uint *counters)
% endif
{
    const uint lane = get_local_id(0) % ${lanes}, teams = get_global_size(0) / ${lanes};
% if phase == "decide":
    const uint n = counters[turn];
    volatile global uint *counter = counters + 2 + turn;
    if (get_global_id(0) == 0)
        counters[1 - turn] = 0;
    for (uint at = get_global_id(0) / ${lanes}; at < n; at += teams) {
        const I node = ready[at];
        if (lane == 0) {
            atomic_xchg(state + node, 2u);
            decided[atomic_inc(counter)] = node;
        }
% else:
    const uint n = counters[2 + turn];
    volatile global uint *counter = counters + 1 - turn;
    if (get_global_id(0) == 0)
        counters[3 - turn] = 0;
    for (uint at = get_global_id(0) / ${lanes}; at < n; at += teams) {
        const I node = decided[at];
% endif
        const I stop = indptr[node + 1];
        for (I k = indptr[node] + lane; k < stop; k += ${lanes}) {
            const I near = indices[k];
            if (near == node)
                continue;
            ${act("near")}
            const I last = indptr[near + 1];
            for (I m = indptr[near]; m < last; ++m) {
                const I far = indices[m];
                if (far != node && far != near)
                    ${act("far")}
            }
        }
    }
}
% endif
<%def name="act(node)">\
% if phase == "decide":
cover(state, decided, counter, ${node});\
% else:
let_go(rank, shift, node, ${node}, state, waits, ready, counter);\
% endif
</%def>\
