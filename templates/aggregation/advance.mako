<%doc>
The set of `choose` for a symmetric graph, in steps that touch only nodes which are decided in them and nodes that wait for these.
A node waits for one that comes before it within two edges and is undecided; once that is decided, it looks for another one, the
last of them by number. `first`: all nodes look for one to wait for, and whether the graph is symmetric. `cover`: nodes that wait
for none are in the set; nodes within two edges of them are not. `wait`: who waited for these looks again.

Source        own; a node that waits for one at a time is from Blelloch, Fineman and Shun, "Greedy sequential maximal independent
              set and matching are parallel on average"; the set is that of `choose`
Index space   `first`: work-items that stride over the nodes; `cover`: a work-group for each node of the set, whose work-items
              share the paths from it in teams of `lanes`; `wait`: such a team for each node that looks
Inputs        a structure in canonical format; shift and rank: the order, as for `choose`; turn: 0 or 1, in turns
Output        state; waiting: the first of those that wait for each node, and next: that of the same node after each; ready: who
              waits for none, and todo: who is to look; counters: the lengths of ready and of todo, each for both turns, and
              whether an edge lacks its mirror image
Local memory  `cover`: listed + 2 numbers; `wait`: one for each team
Result        exact; lists are in any order
</%doc>
#define NONE 0xffffffffu
<%def name="look(better)">\
            const I near = indices[k], last = indptr[near + 1];
            if (near == node)
                continue;
            const uint of_near = rank[near >> shift];
            if (state[near] == 1 && (of_near < own || (of_near == own && near < node)))
                found = ${better("near")};
            // To the end of the row, and several at a time, so that no load waits for another.
            for (I m = indptr[near]; m < last; m += ${at_once}) {
% for u in range(at_once):
                const I far_${u} = m + ${u} < last ? indices[m + ${u}] : node;
% endfor
% for u in range(at_once):
                const uint is_${u} = state[far_${u}], rank_${u} = rank[far_${u} >> shift];
% endfor
% for u in range(at_once):
                if (is_${u} == 1 && (rank_${u} < own || (rank_${u} == own && far_${u} < node)))
                    found = ${better(f"far_{u}")};
% endfor
            }
</%def>\
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
% elif phase == "first":
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint shift, global const uint *restrict rank,
    global const I *restrict indptr, global const I *restrict indices, global const uint *restrict state,
    volatile global uint *restrict waiting, global uint *restrict next, global I *restrict ready,
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
            atomic_or(counters + 4, 1u);
        if (state[node] != 1)
            continue;
        const uint own = rank[node >> shift];
        uint found = 0;
        // All are undecided: one is soon found.
        for (I k = stop - 1; k >= first && !found; --k) {
${look(lambda other: f"(uint){other} + 1")}\
        }
        if (found)
            next[node] = atomic_xchg(waiting + (found - 1), (uint)node);
        else
            ready[atomic_inc(counters)] = node;
    }
}
% else:
void ${name}(
    const uint turn, const uint shift, global const uint *restrict rank, global const I *restrict indptr,
    global const I *restrict indices, global const uint *restrict state, volatile global uint *restrict waiting,
    global uint *restrict next, global I *restrict ready, global const I *restrict todo, volatile global uint *restrict counters)
{
    local uint latest[${teams}];
    const uint me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes}, end = counters[2 + turn];
    volatile global uint *counter = counters + 1 - turn;
    if (get_global_id(0) == 0)
        counters[3 - turn] = 0;
    if (lane == 0)
        latest[team] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (ulong begin = get_group_id(0) * ${teams}; begin < end; begin += get_num_groups(0) * ${teams}) {
        const bool has_node = begin + team < end;
        const I node = has_node ? todo[begin + team] : 0;
        const bool looks = has_node && state[node] == 1;
        if (looks) {
            const I stop = indptr[node + 1];
            const uint own = rank[node >> shift];
            uint found = 0;
            for (I k = indptr[node] + lane; k < stop; k += ${lanes}) {
${look(lambda other: f"max(found, (uint){other} + 1)")}\
            }
            if (found)
                atomic_max(latest + team, found);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (looks && lane == 0) {
            const uint found = latest[team];
            latest[team] = 0;
            if (found)
                next[node] = atomic_xchg(waiting + (found - 1), (uint)node);
            else
                ready[atomic_inc(counter)] = node;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
% endif
