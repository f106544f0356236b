<%doc>
Solve a triangular system by one launch: each row once the unknowns that it needs are known. Rows are taken by level, in tasks:
a work-group takes one task after another by tickets, so that it waits only for tasks that have begun. An unknown is its own
flag: its bits are 0 until it is known, and a 0 is kept as -0. No row of a task needs another, so that no work-item waits for
one of its own work-group. A work-item that has waited for max_polls turns gives up: its row is wrong, STARVED is set, and no
task begins. Then the last work-group to end goes through all tasks anew, which needs no waiting.

Source        Liu, Li, Hogg, Duff and Vinter, "A synchronization-free algorithm for parallel sparse triangular solves"; Anderson
              and Saad, "Solving sparse triangular linear systems on parallel computers": levels; Smith, Levien and Owens,
              "Decoupled fallback": bounded waiting
Index space   n_groups work-groups that share the tasks; 2^column_shift neighbouring work-items are a team, which solves a row for
              as many adjacent columns; 2^shift neighbouring teams share a row
Inputs        tasks: pairs (first place, shift), n_tasks of them and the pair (n, 0); order: the row at each place; indptr: of n
              rows; places: of each entry, the place of the row that its column names; values. indices: without
              `diagonal_at_end` (see triangular/solve): entries beyond the diagonal are passed over. b: its entry (i, j) at
              b_begin + i * b_row + j * b_column; columns first_column up to first_column + width - 1 of `columns`
Output        x: n x columns, row by row; state, all 0 before: N_STATES numbers, then the unknowns, n x width by places.
              SINGULAR: 1 if a diagonal entry is 0; STARVED: 1 if a work-item gave up; TICKET: tasks that have begun, below
              2^31; ENDED: work-groups that have ended
Local memory  work_group * sizeof(T), without `diagonal_at_end` twice, and 8; of one work-item none
Result        deterministic: a work-item subtracts its entries of a row in their order, and neighbours' sums are added as a tree
</%doc>
<%
    # Entries of a row that a work-item loads at a time, so that one waits for all of them together.
    slots = range(4)
    is_alone = work_group == 1
    gathers_diagonal = not unit and not diagonal_at_end
    sums = ["sum", "diagonal"] if gathers_diagonal else ["sum"]
    # The inverse of the diagonal is computed before the wait: a division behind it delays the next level by a tenth (H200).
    inverts = not (unit or is_complex)
    invert = """const R size = magnitude(diagonal);
        const bool is_usual = size > LEAST && size < GREATEST;
        const T inverse = is_usual ? 1 / diagonal : ZERO;"""
%>\
// The states of a solution: numbers of 32 bits.
#define SINGULAR 0
#define STARVED 1
#define TICKET 2
#define ENDED 3
#define N_STATES 4
// A word of a value: 0 is not known yet, a computed 0 is kept as -0.
#define KEEP(word) ((word) ? (word) : (${word})1 << ${8 * item_bytes // parts - 1})
% if parts == 2:
#define LOAD(from) ((${word}2)((from)[0], (from)[1]))
#define IS_KNOWN(words) ((words).x && (words).y)
#define STORE(to, words) ((to)[0] = KEEP((words).x), (to)[1] = KEEP((words).y))
#define NONE ((${word}2)(1))
% else:
#define LOAD(from) (*(from))
#define IS_KNOWN(word) ((word) != 0)
#define STORE(to, word) (*(to) = KEEP(word))
#define NONE 1
% endif
% if inverts:
// Magnitudes between which a number and its inverse are normal.
#define LEAST ${"0x1p-1000" if parts * 8 == item_bytes else "0x1p-120f"}
#define GREATEST ${"0x1p1000" if parts * 8 == item_bytes else "0x1p120f"}
% endif

<%def name="load_entries(prefix)">\
% for i in slots:
                const long k${i} = k + ${i} * lanes;
                ${prefix}j${i} = k${i} < end ? places[k${i}] : -1;
                ${prefix}v${i} = k${i} < end ? values[k${i}] : ZERO;
%     if not diagonal_at_end:
                if (k${i} < end) {
                    const I column = indices[k${i}];
                    if (column ${"<=" if upper else ">="} row) {
%         if not unit:
                        if (column == row)
                            diagonal += ${prefix}v${i};
%         endif
                        ${prefix}j${i} = -1;
                        ${prefix}v${i} = ZERO;
                    }
                }
%     endif
% endfor
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_tasks, const uint width, const uint column_shift, const ulong columns, const ulong first_column,
    const uint max_polls, const int n_groups,
    global const int2 *restrict tasks, global const int *restrict order, global const I *restrict indptr,
% if not diagonal_at_end:
    global const I *restrict indices,
% endif
    global const int *restrict places, global const T *restrict values, global const T *restrict b, const long b_begin,
    const long b_row, const long b_column, global T *x, volatile global int *state)
{
    const int me = get_local_id(0);
    const int team = me >> column_shift;
    // Blocks of adjacent columns: a ticket is a task for a block.
    const uint n_blocks = (width - 1 >> column_shift) + 1, n_tickets = n_tasks * n_blocks;
    volatile global ${word} *known = (volatile global ${word} *)(state + N_STATES);
% if is_alone:
    int gave_up = 0;
    uint next = atomic_inc(state + TICKET);
% else:
    local uint next;
    local int gave_up, is_last;
%     for sum in sums:
    local T ${sum}s[${work_group}];
%     endfor
    if (me == 0) {
        gave_up = 0;
        next = atomic_inc(state + TICKET);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
    bool finishes = false;
    uint ticket = next;
    while (true) {
        if (ticket >= n_tickets) {
            // The last work-group to end goes through all tasks anew, if a work-item gave up.
            if (finishes)
                return;
% if is_alone:
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            const bool is_last = atomic_inc(state + ENDED) == n_groups - 1;
% else:
            barrier(CLK_GLOBAL_MEM_FENCE);
            if (me == 0)
                is_last = atomic_inc(state + ENDED) == n_groups - 1;
            barrier(CLK_LOCAL_MEM_FENCE);
% endif
            if (!is_last || !state[STARVED])
                return;
            finishes = true;
            ticket = 0;
        }
        const uint task = ticket / n_blocks, block = ticket - task * n_blocks;
        const uint column_here = (block << column_shift) + (me & (1 << column_shift) - 1);
        const ulong column_of_x = first_column + column_here;
        const int2 here = tasks[task];
        const int lanes = 1 << here.y, lane = team & (lanes - 1), place = here.x + (team >> here.y);
        const bool has_row = place < tasks[task + 1].x && column_here < width;
        const I row = order[has_row ? place : here.x];
        volatile global ${word} *own_known = known + ((ulong)place * width + column_here) * ${parts};
        global T *own_x = x + (ulong)row * columns + column_of_x;
% if not is_alone:
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
        // The next ticket is taken ahead: this work-group ends this task first, which waits for earlier tickets only.
        if (me == 0)
            next = finishes ? ticket + 1 : (uint)atomic_inc(state + TICKET);
        T sum = has_row && lane == 0 ? b[b_begin + row * b_row + (long)column_of_x * b_column] : ZERO;
% if diagonal_at_end:
        const long end = has_row ? indptr[row + 1]${"" if upper else " - 1"} : 0;
        long k = has_row ? indptr[row]${" + 1" if upper else ""} + lane : 0;
%     if not unit:
        const T diagonal = values[${"indptr[row]" if upper else "indptr[row + 1] - 1"}];
%         if inverts:
        ${invert}
%         endif
%     endif
% else:
        const long end = has_row ? indptr[row + 1] : 0;
        long k = has_row ? indptr[row] + lane : 0;
%     if not unit:
        T diagonal = ZERO;
%     endif
% endif
% if diagonal_at_end and not unit:
        if (lane == 0 && magnitude(diagonal) == 0)
            atomic_or(state + SINGULAR, 1);
% endif
        uint polls = 0;
        if (k < end) {
            int ${", ".join(f"j{i}" for i in slots)};
            T ${", ".join(f"v{i}" for i in slots)};
            {
${load_entries("")}\
            }
            while (k < end) {
                // The next entries are loaded before the wait.
                k += ${len(slots)} * lanes;
                int ${", ".join(f"next_j{i}" for i in slots)};
                T ${", ".join(f"next_v{i}" for i in slots)};
                {
${load_entries("next_")}\
                }
                // An entry that is not there has the value 0 and a finite unknown.
% for i in slots:
                ${words} w${i} = j${i} < 0 ? NONE : 0;
% endfor
                bool waits;
                do {
% for i in slots:
                    if (!IS_KNOWN(w${i}))
                        w${i} = LOAD(known + ((ulong)j${i} * width + column_here) * ${parts});
% endfor
                    waits = !(${" && ".join(f"IS_KNOWN(w{i})" for i in slots)});
                } while (waits && ++polls < max_polls);
% for i in slots:
                sum -= times(v${i}, T_FROM_BITS(w${i}));
                j${i} = next_j${i};
                v${i} = next_v${i};
% endfor
            }
        }
        if (polls >= max_polls)
            gave_up = 1;
% if not is_alone:
        if (lanes > 1) {
%     for sum in sums:
            ${sum}s[me] = ${sum};
%     endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int half_lanes = lanes / 2; half_lanes > 0; half_lanes /= 2) {
                if (lane < half_lanes) {
%     for sum in sums:
                    ${sum}s[me] += ${sum}s[me + (half_lanes << column_shift)];
%     endfor
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
%     for sum in sums:
            ${sum} = ${sum}s[me];
%     endfor
        }
% endif
        if (has_row && lane == 0) {
% if gathers_diagonal:
            if (magnitude(diagonal) == 0)
                atomic_or(state + SINGULAR, 1);
% endif
% if inverts:
%     if not diagonal_at_end:
        ${invert}
%     endif
            T solution;
            if (is_usual)
                solution = sum * inverse;
            else
                solution = sum / diagonal;
% else:
            const T solution = ${"sum" if unit else "quotient(sum, diagonal)"};
% endif
            STORE(own_known, as_${words}(solution));
            *own_x = solution;
        }
% if not is_alone:
        // Besides ordering what is in local memory, the barrier brings the work-items of a sub-group together again.
        barrier(CLK_LOCAL_MEM_FENCE);
        if (finishes)
            barrier(CLK_GLOBAL_MEM_FENCE);
% endif
        ticket = next;
        if (gave_up && !finishes) {
            // Tickets are not less than n_tickets from now on.
            if (me == 0) {
                atomic_or(state + STARVED, 1);
                atomic_or(state + TICKET, INT_MIN);
            }
            ticket = n_tickets;
        }
    }
}
