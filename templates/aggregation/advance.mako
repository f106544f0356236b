<%doc>
The set of `choose` for a symmetric graph, in steps that touch only nodes which are decided in them and nodes that wait for these.
A node waits for one that comes before it within two edges, is undecided, and is looked for only once that is decided: each node
goes through its neighbours' rows once in all. `first`: each node looks for one to wait for, and whether the graph is symmetric.
`cover`: nodes that wait for none are in the set; nodes within two edges of them are not. `wait`: who waited for these looks for
another one to wait for.

Source        own; the idea of going through the neighbours once is Blelloch, Fineman and Shun's, "Greedy sequential maximal
              independent set and matching are parallel on average"; the set is that of `choose`
Index space   `first`: work-items that stride over the nodes; `wait`: over those that wait for none; `cover`: a work-group for
              each node of the set, whose work-items share the paths from it in teams of `lanes`
Inputs        a structure in canonical format; shift and rank: the order, as for `choose`; turn: 0 or 1, in turns
Output        state; waiting: the first of those that wait for each node, and next: that of the same node after each; from: the
              entry at which a node goes on; ready: who waits for none, and todo: who is to look; counters: the lengths of ready
              and of todo, each for both turns, and whether an edge lacks its mirror image
Local memory  `cover`: listed + 2 numbers
Result        exact; lists are in any order
</%doc>
#define NONE 0xffffffffu
% if phase != "cover":
bool comes_before(global const uint *rank, const uint shift, const I a, const I b)
{
    const uint of_a = rank[a >> shift], of_b = rank[b >> shift];
    return of_a < of_b || (of_a == of_b && a < b);
}

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
% if phase == "cover":
void ${name}(
    const uint turn, global const I *restrict indptr, global const I *restrict indices, volatile global uint *restrict state,
    global const uint *restrict waiting, global const uint *restrict next, global const I *restrict ready,
    global I *restrict todo, volatile global uint *restrict counters)
{
    local uint n_listed, begin;
    local I listed[${listed}];
    const uint me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes}, n = counters[turn];
    volatile global uint *counter = counters + 2 + turn;
    if (get_global_id(0) == 0)
        counters[1 - turn] = 0;
    for (uint at = get_group_id(0); at < n; at += get_num_groups(0)) {
        const I node = ready[at], stop = indptr[node + 1];
        if (me == 0) {
            atomic_xchg(state + node, 2u);
            n_listed = 0;
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
                for (uint who = waiting[other]; who != NONE; who = next[who]) {
                    const uint place = atomic_inc(&n_listed);
                    if (place < ${listed})
                        listed[place] = (I)who;
                    else
                        todo[atomic_inc(counter)] = (I)who;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint here = min(n_listed, ${listed}u);
        if (me == 0 && here)
            begin = atomic_add(counter, here);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint place = me; place < here; place += ${work_group})
            todo[begin + place] = listed[place];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
% else:
void ${name}(
% if phase == "first":
    const ulong n, const ulong stride, const ulong step, const ulong span,
% else:
    const uint turn,
% endif
    const uint shift, global const uint *restrict rank, global const I *restrict indptr, global const I *restrict indices,
    global const uint *restrict state, volatile global uint *restrict waiting, global uint *restrict next,
    global I *restrict from, global I *restrict ready, ${"" if phase == "first" else "global const I *restrict todo, "}\
volatile global uint *restrict counters)
{
% if phase == "first":
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    volatile global uint *counter = counters;
    for (ulong at = begin; at < end; at += step) {
        const I node = (I)at, first = indptr[node], stop = indptr[node + 1];
        bool is_mirrored = true;
        for (I k = first; k < stop && is_mirrored; ++k) {
            const I near = indices[k], last = indptr[near + 1];
            I low = indptr[near], high = last;
            while (low < high) {
                const I middle = low + (high - low) / 2;
                if (indices[middle] < node)
                    low = middle + 1;
                else
                    high = middle;
            }
            is_mirrored = low < last && indices[low] == node;
        }
        if (!is_mirrored)
            atomic_or(counters + 4, 1u);
        I k = stop - 1;
% else:
    const uint end = counters[2 + turn];
    volatile global uint *counter = counters + 1 - turn;
    if (get_global_id(0) == 0)
        counters[3 - turn] = 0;
    for (uint at = get_global_id(0); at < end; at += get_global_size(0)) {
        const I node = todo[at], first = indptr[node];
        I k = from[node];
% endif
        if (state[node] != 1)
            continue;
        uint found = NONE;
        for (; k >= first && found == NONE; --k) {
            const I near = indices[k], last = indptr[near + 1];
            if (near == node)
                continue;
            if (state[near] == 1 && comes_before(rank, shift, near, node))
                found = (uint)near;
            // To the end of the row, so that no load waits for another.
            for (I m = indptr[near]; m < last; ++m) {
                const I far = indices[m];
                if (state[far] == 1 && far != node && comes_before(rank, shift, far, node))
                    found = (uint)far;
            }
        }
        if (found == NONE)
            ready[atomic_inc(counter)] = node;
        else {
            from[node] = k + 1;
            next[node] = atomic_xchg(waiting + found, (uint)node);
        }
    }
}
% endif
