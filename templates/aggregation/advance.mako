<%doc>
The maximal independent set of distance 2 that choose.mako finds, for a symmetric graph, with work on active nodes alone. An
undecided node waits for one blocker: an undecided node before it in the order, within two edges. Once the blocker is decided, the
node searches for another one, the last of them by number. `first`: all nodes search for a blocker; the symmetry of the graph is
checked. `step`: the work-groups take the active nodes. A node without blocker joins the set, nodes within two edges of it are not
in it, and the nodes that waited for these are active in the next step.

No work-group waits for another one. The waiting list of a node is closed when the node is decided: a node that comes late
searches again. Stale states do no harm: a state changes once, from 2, and a node joins the set only if all nodes before it,
within two edges, have state 0.

Source        own; a node that waits for one at a time is from Blelloch, Fineman and Shun, "Greedy sequential maximal independent
              set and matching are parallel on average"; the set is that of `choose`
Index space   `first`: work-items that stride over the nodes; `step`: work-groups that stride over the active nodes, whose
              work-items share the neighbours of a node, and the paths from it, in teams of `lanes`
Inputs        a structure in canonical format; shift and rank: the order, as for `choose`; turn: 0, 1, 2, in turns
Output        state; waiting, next: the linked list of the nodes that wait for a node: its first node, and each node's next;
              lists: three of n nodes, one of which holds the active nodes; counters: their lengths, and whether an edge lacks
              its mirror image
Local memory  `step`: 4 numbers and a word for each of `listed` nodes, `woken` numbers, and 3 words
Result        exact; lists are in any order
</%doc>
#define NONE 0xffffffffu
#define CLOSED 0xfffffffeu
<%def name="look(better)">\
            const I near = indices[k], last = indptr[near + 1];
            if (near == node)
                continue;
            const uint of_near = rank[near >> shift], is_near = state[near];
            if (is_near == 2 && (of_near < own_rank || (of_near == own_rank && near < node)))
                blocker = ${better("(uint)near + 1")};
% if phase == "step":
            if (is_near == 1)
                blocker = NONE;
% endif
            // The entries of a neighbour's row are loaded several at a time, so that these loads are in flight together.
            for (I m = indptr[near]; m < last; m += ${at_once}) {
% for u in range(at_once):
                const I far_${u} = m + ${u} < last ? indices[m + ${u}] : node;
% endfor
% for u in range(at_once):
                const uint is_${u} = state[far_${u}], rank_${u} = rank[far_${u} >> shift];
% endfor
% for u in range(at_once):
                if (is_${u} == 2 && (rank_${u} < own_rank || (rank_${u} == own_rank && far_${u} < node)))
                    blocker = ${better(f"(uint)far_{u} + 1")};
% if phase == "step":
                if (is_${u} == 1)
                    blocker = NONE;
% endif
% endfor
            }
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
% if phase == "first":
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint shift, global const uint *restrict rank,
    global const I *restrict indptr, global const I *restrict indices, global const uint *restrict state,
    volatile global uint *restrict waiting, global uint *restrict next, global I *restrict lists,
    volatile global uint *restrict counters)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
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
            atomic_or(counters + 3, 1u);
        if (state[node] != 2)
            continue;
        const uint own_rank = rank[node >> shift];
        uint blocker = 0;
        // All nodes are undecided: the search for a blocker, an undecided node earlier in the order, is short.
        for (I k = stop - 1; k >= first && !blocker; --k) {
${look(lambda other: other)}\
        }
        if (blocker)
            next[node] = atomic_xchg(waiting + (blocker - 1), (uint)node);
        else
            lists[atomic_inc(counters)] = node;
    }
}
% else:
void ${name}(
    const uint turn, const ulong n, const uint shift, global const uint *restrict rank, global const I *restrict indptr,
    global const I *restrict indices, volatile global uint *states, volatile global uint *restrict waiting,
    volatile global uint *restrict next, global I *lists, volatile global uint *restrict counters)
{
    local I looks[${listed}], roots[${listed}], firsts[${listed}], stops[${listed}], woken[${woken}];
    local uint latest[${listed}], n_roots, n_woken, begin;
    const uint me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes};
    const uint group = get_group_id(0), groups = get_num_groups(0);
    const uint end = counters[turn], after = turn == 2 ? 0 : turn + 1;
    global const I *todo = lists + turn * n;
    global I *rest = lists + after * n;
    global const uint *state = (global const uint *)states;
    volatile global uint *counter = counters + after;
    const uint n_mine = end > group ? (end - group - 1) / groups + 1 : 0, n_looks = min(n_mine, ${listed}u);
    // Set to 0 the length of the list of active (undecided) nodes that the launch before this one read.
    if (get_global_id(0) == 0)
        counters[3 - turn - after] = 0;
    if (me == 0) {
        n_roots = 0;
        n_woken = 0;
    }
    for (uint at = me; at < n_mine; at += ${work_group}) {
        const I node = todo[group + (ulong)at * groups];
        if (at < ${listed}) {
            looks[at] = node;
            latest[at] = 0;
        } else
            rest[atomic_inc(counter)] = node;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint at = team; at < n_looks; at += ${teams}) {
        const I node = looks[at], first = indptr[node], stop = indptr[node + 1];
        const uint own_rank = rank[node >> shift];
        uint blocker = state[node] == 2 ? 0 : NONE;
        for (I k = first + lane; blocker != NONE && k < stop; k += ${lanes}) {
${look(lambda other: f"max(blocker, {other})")}\
        }
        if (blocker)
            atomic_max(latest + at, blocker);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (uint at = me; at < n_looks; at += ${work_group}) {
        const I node = looks[at];
        const uint blocker = latest[at];
        // Blocker NONE: the node is decided, as a node of the independent set is within two edges of it.
        if (blocker == NONE)
            continue;
        if (blocker == 0) {
            const uint place = atomic_inc(&n_roots);
            atomic_xchg(states + node, 1u);
            roots[place] = node;
            firsts[place] = indptr[node];
            stops[place] = indptr[node + 1];
            continue;
        }
        volatile global uint *list = waiting + (blocker - 1);
        uint head = *list;
        // A node's successor in a waiting list is written before the node enters the list: an atomic write is done on return.
        while (head != CLOSED && atomic_xchg(next + node, head) != CLOSED) {
            const uint was = atomic_cmpxchg(list, head, (uint)node);
            if (was == head)
                break;
            head = was;
        }
        if (head == CLOSED)
            rest[atomic_inc(counter)] = node;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    // The teams of `lanes` work-items take the rows of neighbours of roots (new nodes of the set) in turn, a row to a team.
    uint before = 0;
    for (uint at = 0; at < n_roots; ++at) {
        const I node = roots[at], stop = stops[at];
        I k = firsts[at] + (I)((team + ${teams} - before % ${teams}) % ${teams});
        before += (uint)(stop - firsts[at]);
        for (; k < stop; k += ${teams}) {
            const I near = indices[k], first = indptr[near], last = indptr[near + 1];
            // Loop index m = first - 1, before the first entry of a neighbour's row, stands for the neighbour itself.
            for (I m = first - 1 + (I)lane; near != node && m < last; m += ${lanes}) {
                const I other = m < first ? near : indices[m];
                if (other == node || (other == near && m >= first) || atomic_cmpxchg(states + other, 2u, 0u) != 2)
                    continue;
                uint who = atomic_xchg(waiting + other, CLOSED);
                while (who != NONE) {
                    const uint place = atomic_inc(&n_woken);
                    if (place < ${woken})
                        woken[place] = (I)who;
                    else
                        rest[atomic_inc(counter)] = (I)who;
                    who = next[who];
                }
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint n_listed = min(n_woken, ${woken}u);
    if (me == 0 && n_listed)
        begin = atomic_add(counter, n_listed);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint at = me; at < n_listed; at += ${work_group})
        rest[begin + at] = woken[at];
}
% endif
