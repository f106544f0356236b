<%doc>
The level of each row of a triangular system: how many rows have to be solved before it, one after another, at least. One
launch: each row once the levels of the rows that it needs are known. Entries on the other side of the diagonal are passed over;
with `with_supernodes`, those within a supernode too, whose rows have one level.
Work-groups take blocks of rows by tickets, in the order in which they can be solved, so that each waits only for work-groups
that have begun. A level is its own flag: it is UNKNOWN until it is found. Levels of the work-group's own block are looked for
in local memory. All waiting is in one loop, which work-items go through together: none waits for one of its own sub-group. A
work-item that finds nothing new in max_polls turns gives up and sets STARVED, and later work-groups do not begin.

Source        Liu, Li, Hogg, Duff and Vinter, "A synchronization-free algorithm for parallel sparse triangular solves"; Su et al.,
              "Capellini": one loop for all waiting; Smith, Levien and Owens, "Decoupled fallback": bounded waiting
Index space   a work-item to a row
Inputs        indptr, indices: of n rows; the matrix is lower triangular or, if `upper`, upper triangular. supernodes, with
              `with_supernodes`: see triangular/supernodes
Output        levels: of n rows, from 0 on, UNKNOWN before; state: HIGHEST: the highest level; STARVED: 1 if the launch gave up;
              TICKET: work-groups that have begun; all 0 before
Local memory  (work_group + 1) * sizeof(int); of one work-item, which is the plain kernel, none
Result        exact, if STARVED is 0
</%doc>
<%
    def place(row):
        return f"(n - 1 - {row})" if upper else row
    is_alone = work_group == 1
    own = "levels[row]" if is_alone else "found[me]"
%>\
#define HIGHEST 0
#define STARVED 1
#define TICKET 2
#define UNKNOWN -1

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const I n, const uint max_polls, global const I *restrict indptr, global const I *restrict indices,
% if with_supernodes:
    global const int *restrict supernodes,
% endif
    volatile global int *levels, volatile global int *state)
{
    const int me = get_local_id(0);
% if is_alone:
    const int ticket = state[STARVED] ? -1 : atomic_inc(state + TICKET);
% else:
    local int first_ticket;
    volatile local int found[${work_group}];
    if (me == 0)
        first_ticket = state[STARVED] ? -1 : atomic_inc(state + TICKET);
    found[me] = UNKNOWN;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int ticket = first_ticket;
% endif
    const I first = (I)ticket * ${work_group}, own_place = first + me;
    if (ticket < 0 || own_place >= n)
        return;
    const I row = ${place("own_place")}, end = indptr[row + 1];
% if with_supernodes:
    // The supernode's first row: entries from its column on are passed over.
    const I bound = row ${"+" if upper else "-"} max(-supernodes[row], 0);
% else:
    const I bound = row;
% endif
    I k = indptr[row];
    int level = 0;
    uint polls = 0;  // turns since the work-item last found something new
    // The condition reads memory, so that no compiler moves the stores behind the loop, where others would wait for them.
    for (; ${own} == UNKNOWN && polls < max_polls; ++polls) {
        while (k < end) {
            const I column = indices[k];
            if (column ${"<=" if upper else ">="} bound) {
                ++k;
                continue;
            }
% if not is_alone:
            const I needed = ${place("column")};
% endif
            const int below = ${"levels[column]" if is_alone else "needed >= first ? found[needed - first] : levels[column]"};
            if (below == UNKNOWN)
                break;
            level = max(level, below + 1);
            ++k;
            polls = 0;
        }
        if (k >= end) {
            levels[row] = level;
% if not is_alone:
            found[me] = level;
% endif
            if (level > state[HIGHEST])
                atomic_max(state + HIGHEST, level);
        }
    }
    if (${own} == UNKNOWN)
        atomic_or(state + STARVED, 1);
}
