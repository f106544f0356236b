<%doc>
Solve a triangular system by one launch: each row as soon as the unknowns that it needs are known; or find the level of each row.
Work-groups take blocks of rows by tickets, in the order in which they can be solved, so that each waits only for work-groups that
have begun. An unknown is its own flag: it holds a reserved NaN until it is known. Unknowns of the work-group's own block are
looked for in local memory. All waiting is in one loop, which lanes go through together: none waits for a lane of its own
sub-group. A lane that finds nothing new in max_polls turns gives up and sets STARVED, and later work-groups do not begin.
With `finish`, one work-group computes what such a launch left, if STARVED is set: its waiting is by barriers alone.

Source        Liu, Li, Hogg, Duff and Vinter, "A synchronization-free algorithm for parallel sparse triangular solves"; Su et al.,
              "Capellini": one loop for all waiting; Smith, Levien and Owens, "Decoupled fallback": bounded waiting
Index space   a team of `lanes` work-items to a row and a column, `rows` rows one after another; `finish`: one work-group
Inputs        indptr, indices: of n rows; entries on the other side of the diagonal are passed over. Solution: values; b: of
              n x columns, its entry (i, j) at b_begin + i * b_row + j * b_column; `diagonal_at_end`: see triangular/solve
Output        x: n x columns, row by row, UNKNOWN before; levels: of n rows, UNKNOWN before; state: SINGULAR: 1 if a diagonal
              entry is 0; STARVED: 1 if the launch gave up; TICKET: work-groups that have begun; all 0 before
Local memory  (work_group / lanes * rows + (lanes > 1 ? work_group : 0)) * sizeof(T); of one work-item none
Result        deterministic. One lane: a row's entries are subtracted in their order, so that the bits are those of
              triangular/solve. Several: each lane subtracts every lanes-th entry, and the lanes' sums are added in their order
</%doc>
<%
    teams = work_group // lanes
    slots = teams * (1 if finish else rows)
    is_local = work_group > 1 and not finish
    def place(row):
        return f"(n - 1 - {row})" if upper else row
%>\
// The states of a solution: numbers of 32 bits.
#define SINGULAR 0
#define STARVED 1
#define TICKET 2
// The word of a value that is not known yet; a computed word of the same bits is stored as another NaN.
#define UNKNOWN ((${word})${unknown})
#define ORDINARY(word) ((word) == UNKNOWN ? UNKNOWN ^ 1 : (word))
#define WORDS_OF(value) as_${words}(value)
% if parts == 2:
#define LOAD(from) ((${word}2)((from)[0], (from)[1]))
#define IS_KNOWN(words) ((words).x != UNKNOWN && (words).y != UNKNOWN)
#define STORE(to, words) ((to)[0] = ORDINARY((words).x), (to)[1] = ORDINARY((words).y))
% else:
#define LOAD(from) (*(from))
#define IS_KNOWN(word) ((word) != UNKNOWN)
#define STORE(to, word) (*(to) = ORDINARY(word))
% endif

<%def name="begin_row()">\
            const I place = (I)(pair / columns);
            const ulong column = pair - (ulong)place * columns;
            const I row = ${place("place")}, begin = indptr[row]${" + 1" if upper and diagonal_at_end else ""};
            const I end = indptr[row + 1]${" - 1" if diagonal_at_end and not upper else ""};
            I k = begin + lane, j = k < end ? indices[k] : 0;
% if levels:
            T sum = 0;
% else:
            T value = k < end ? values[k] : ZERO, sum = lane == 0 ? b[b_begin + row * b_row + (long)column * b_column] : ZERO;
% endif
% if not unit:
            T diagonal = ${f"values[{'begin - 1' if upper else 'end'}]" if diagonal_at_end else "ZERO"};
% endif
% if lanes > 1:
            int gathered = 0;
            T total = ZERO;
% endif
</%def>\
<%def name="advance()">\
                while (k < end) {
% if not diagonal_at_end:
                    if (j ${"<=" if upper else ">="} row) {
%     if not unit:
                        if (j == row)
                            diagonal += value;
%     endif
                    } else
% endif
                    {
% if is_local:
                        const ulong needed = (ulong)${place("j")} * columns + column;
                        const ${words} found = needed >= first ? LOAD(known + (needed - first) * ${parts})
                                                            : LOAD(x + ((ulong)j * columns + column) * ${parts});
% else:
                        const ${words} found = LOAD(x + ((ulong)j * columns + column) * ${parts});
% endif
                        if (!IS_KNOWN(found))
                            break;
% if levels:
                        sum = max(sum, T_FROM_BITS(found) + 1);
% else:
                        sum -= times(value, T_FROM_BITS(found));
% endif
                    }
                    k += ${lanes};
                    polls = 0;
                    if (k < end) {
                        j = indices[k];
% if not levels:
                        value = values[k];
% endif
                    }
                }
% if lanes > 1:
                // The last lane adds the sums of the others, which need not wait for it.
                if (k >= end && lane < ${lanes - 1}) {
                    STORE(partial + me * ${parts}, WORDS_OF(sum));
%     if finish:
                    waits = false;
%     endif
                }
                while (lane == ${lanes - 1} && gathered < ${lanes - 1}) {
                    const ${words} part = LOAD(partial + (me - ${lanes - 1} + gathered) * ${parts});
                    if (!IS_KNOWN(part))
                        break;
                    total += T_FROM_BITS(part);
                    ++gathered;
                    polls = 0;
                }
                if (k >= end && gathered == ${lanes - 1}) {
% else:
                if (k >= end) {
% endif
<% result = "total + sum" if lanes > 1 else "sum" %>\
% if not unit:
                    if (magnitude(diagonal) == 0)
                        atomic_or(state + SINGULAR, 1);
% endif
                    const T solution = ${result if unit else f"quotient({result}, diagonal)"};
                    STORE(x + ((ulong)row * columns + column) * ${parts}, WORDS_OF(solution));
% if is_local:
                    STORE(known + slot * ${parts}, WORDS_OF(solution));
% else:
                    waits = false;
% endif
                }
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n, const ulong columns, const uint max_polls, global const I *restrict indptr, global const I *restrict indices,
% if not levels:
    global const T *restrict values, global const T *restrict b, const long b_begin, const long b_row, const long b_column,
% endif
    volatile global ${word} *x, volatile global int *state)
{
    const ulong all = (ulong)n * columns;
    const int me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes};
    // Turns since the lane last found something new.
    uint polls = 0;
% if is_local:
    volatile local ${word} known[${slots * parts}];
% endif
% if lanes > 1:
    volatile local ${word} partial[${work_group * parts}];
% endif
% if finish:
%     if work_group > 1:
    local int goes_on;
%     endif
    if (!state[STARVED])
        return;
    for (ulong first = 0; first < all; first += ${teams}) {
        const ulong pair = min(first + team, all - 1);
${begin_row()}\
        bool waits = first + team < all && !IS_KNOWN(LOAD(x + ((ulong)row * columns + column) * ${parts}));
%     if lanes > 1:
        for (int i = me; i < ${work_group * parts}; i += ${work_group})
            partial[i] = UNKNOWN;
        barrier(CLK_LOCAL_MEM_FENCE);
%     endif
%     if work_group == 1:
        // The unknowns of earlier rows are known, so that one turn is enough.
        while (waits) {
${advance()}\
        }
%     else:
        int others_wait = 1;
        while (others_wait) {
            if (waits) {
${advance()}\
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (me == 0)
                goes_on = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (waits)
                goes_on = 1;
            barrier(CLK_LOCAL_MEM_FENCE);
            others_wait = goes_on;
        }
%     endif
    }
% else:
%     if work_group == 1:
    const uint ticket = state[STARVED] ? UINT_MAX : (uint)atomic_inc(state + TICKET);
%     else:
    local uint ticket;
    if (me == 0)
        ticket = state[STARVED] ? UINT_MAX : (uint)atomic_inc(state + TICKET);
%     endif
%     if is_local:
    for (int i = me; i < ${slots * parts}; i += ${work_group})
        known[i] = UNKNOWN;
%     endif
%     if lanes > 1:
    for (int i = me; i < ${work_group * parts}; i += ${work_group})
        partial[i] = UNKNOWN;
%     endif
%     if work_group > 1:
    barrier(CLK_LOCAL_MEM_FENCE);
%     endif
    if (ticket == UINT_MAX)
        return;
    const ulong first = (ulong)ticket * ${slots};
    for (uint slot = team; slot < ${slots} && first + slot < all && polls < max_polls; slot += ${teams}) {
        const ulong pair = first + slot;
${begin_row()}\
%     if is_local:
        // The condition reads memory, so that no compiler moves the stores behind the loop, where lanes would wait for them.
%         if lanes > 1:
        const volatile local ${word} *own = lane < ${lanes - 1} ? partial + me * ${parts} : known + slot * ${parts};
%         else:
        const volatile local ${word} *own = known + slot * ${parts};
%         endif
        while (!IS_KNOWN(LOAD(own)) && polls < max_polls) {
%     else:
        bool waits = true;
        while (waits && polls < max_polls) {
%     endif
            ++polls;
${advance()}\
        }
    }
    if (polls >= max_polls)
        atomic_or(state + STARVED, 1);
% endif
}
