<%doc>
Solve a triangular system by one launch: each row once the unknowns that it needs are known. Rows are taken by level, in tasks:
a work-group takes one task after another by tickets, so that it waits only for tasks that have begun. An unknown is its own
flag: its bits are 0 until it is known, and a 0 is kept as -0. No row of a task needs another, so that no work-item waits for
one of its own work-group. With `rows` above 1, a task's rows are supernodes: up to `rows` adjacent rows, each with the entries of
the row solved before it and one in that row's column. Their common unknowns are looked for once, and they are solved one after
another without a wait. A work-item that has waited for max_polls turns gives up: its row is wrong, STARVED is set, and no
task begins. Then the last work-group to end goes through all tasks anew, which needs no waiting.

Source        Liu, Li, Hogg, Duff and Vinter, "A synchronization-free algorithm for parallel sparse triangular solves"; Anderson
              and Saad, "Solving sparse triangular linear systems on parallel computers": levels; Smith, Levien and Owens,
              "Decoupled fallback": bounded waiting; Ng and Peyton, "Block sparse Cholesky algorithms": supernodes
Index space   n_groups work-groups that share the tasks; 2^column_shift neighbouring work-items are a team, which solves a row for
              as many adjacent columns; 2^shift neighbouring teams share a row
Inputs        tasks: pairs (first place, shift), n_tasks of them and the pair (end, 0); order: the row at each place, of a
              supernode the first that is solved; supernodes: with `rows` above 1, see triangular/supernodes; indptr; places: of
              each entry, the place of the row that its column names, `rows` places to a supernode; values. indices: without
              `diagonal_at_end` (see triangular/solve): entries beyond the diagonal are passed over. b: its entry (i, j) at
              b_begin + i * b_row + j * b_column; columns first_column up to first_column + width - 1 of `columns`
Output        x: n x columns, row by row; state, all 0 before: N_STATES numbers, then the unknowns, places x width.
              SINGULAR: 1 if a diagonal entry is 0; STARVED: 1 if a work-item gave up; TICKET: tasks that have begun, below
              2^31; ENDED: work-groups that have ended
Local memory  rows * work_group * sizeof(T), without `diagonal_at_end` twice, and 8; of one work-item none
Result        deterministic: a work-item subtracts its entries of a row in their order, and neighbours' sums are added as a tree
</%doc>
<%
    # Entries of a row that a work-item loads at a time, so that one waits for all of them together.
    slots = range(4)
    is_alone = work_group == 1
    gathers_diagonal = not unit and not diagonal_at_end
    # The rows of a supernode.
    members = range(rows)
    sums = [f"sum{i}" for i in members] + (["diagonal0"] if gathers_diagonal else [])
    # The inverse of the diagonal is computed before the wait: a division behind it delays the next level by a tenth (H200).
    inverts = not (unit or is_complex)
    def invert(i):
        return f"""const R size{i} = magnitude(diagonal{i});
        const bool is_usual{i} = size{i} > LEAST && size{i} < GREATEST;
        const T inverse{i} = is_usual{i} ? 1 / diagonal{i} : ZERO;"""
    def own_entry(i, j):
        """Where the value of the i-th row of a supernode is for the supernode's j-th unknown: of rows behind the last, any."""
        j = f"min({j}, m{i})" if rows > 1 else j
        return f"begin{i} - 1 - {j}" if upper else f"begin{i} + n_entries + {j}"
%>\
// The states of a solution: numbers of 32 bits.
#define SINGULAR 0
#define STARVED 1
#define TICKET 2
#define ENDED 3
#define N_STATES 4
${define_words(word, parts, item_bytes)}\
% if inverts:
${define_limits(parts * 8 == item_bytes)}\
% endif

<%def name="define_words(word, parts, item_bytes)">\
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
</%def>\
<%def name="define_limits(is_double)">\
// Magnitudes between which a number and its inverse are normal.
#define LEAST ${"0x1p-1000" if is_double else "0x1p-120f"}
#define GREATEST ${"0x1p1000" if is_double else "0x1p120f"}
</%def>\
<%def name="load_entries(prefix)">\
% for slot in slots:
                const long k${slot} = k + ${slot} * lanes;
                ${prefix}j${slot} = k${slot} < n_entries ? places[begin0 + k${slot}] : -1;
%     for i in members:
                ${prefix}v${slot}_${i} = k${slot} < n_entries ? values[begin${i} + k${slot}] : ZERO;
%     endfor
%     if not diagonal_at_end:
                if (k${slot} < n_entries) {
                    const I column = indices[begin0 + k${slot}];
                    if (column ${"<=" if upper else ">="} row) {
%         if not unit:
                        if (column == row)
                            diagonal0 += ${prefix}v${slot}_0;
%         endif
                        ${prefix}j${slot} = -1;
                        ${prefix}v${slot}_0 = ZERO;
                    }
                }
%     endif
% endfor
</%def>\
<%
    loaded = [f"v{slot}_{i}" for slot in slots for i in members]
%>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_tasks, const uint width, const uint column_shift, const ulong columns, const ulong first_column,
    const uint max_polls, const int n_groups,
    global const int2 *restrict tasks, global const int *restrict order, global const I *restrict indptr,
% if not diagonal_at_end:
    global const I *restrict indices,
% endif
% if rows > 1:
    global const int *restrict supernodes,
% endif
    global const int *restrict places, global const T *restrict values, global const T *restrict b, const long b_begin,
    const long b_row, const long b_column, global T *x, volatile global int *state)
{
    const int me = get_local_id(0);
    const int team = me >> column_shift;
    // Blocks of adjacent columns: a ticket is a task for a block.
    const uint n_blocks = ((width - 1) >> column_shift) + 1, n_tickets = n_tasks * n_blocks;
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
        const uint column_here = (block << column_shift) + (me & ((1 << column_shift) - 1));
        const ulong column_of_x = first_column + column_here;
        const int2 here = tasks[task];
        const int lanes = 1 << here.y, lane = team & (lanes - 1), place = here.x + (team >> here.y);
        const bool has_row = place < tasks[task + 1].x && column_here < width;
        const I row = order[has_row ? place : here.x];
        volatile global ${word} *own_known = known + ((ulong)place * ${rows} * width + column_here) * ${parts};
% if not is_alone:
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
        // The next ticket is taken ahead: this work-group ends this task first, which waits for earlier tickets only.
        if (me == 0)
            next = finishes ? ticket + 1 : (uint)atomic_inc(state + TICKET);
% if rows > 1:
        // Rows behind the last of a smaller supernode are computed as its last, and not stored.
        const int size = supernodes[row];
%     for i in members:
        const int m${i} = min(${i}, size - 1);
        const I row${i} = row ${"-" if upper else "+"} m${i};
%     endfor
% else:
        const I row0 = row;
% endif
% for i in members:
        T sum${i} = has_row && lane == 0 ? b[b_begin + row${i} * b_row + (long)column_of_x * b_column] : ZERO;
% endfor
% if diagonal_at_end:
        const long n_entries = indptr[row + 1] - indptr[row] - 1;
%     for i in members:
        const long begin${i} = indptr[row${i}]${f" + 1 + m{i}" if upper and rows > 1 else " + 1" if upper else ""};
%         if not unit:
        const T diagonal${i} = values[${own_entry(i, i)}];
%             if inverts:
        ${invert(i)}
%             endif
%         endif
%         for j in range(i):
        const T coupling${i}_${j} = values[${own_entry(i, j)}];
%         endfor
%     endfor
% else:
        const long begin0 = indptr[row], n_entries = indptr[row + 1] - begin0;
%     if not unit:
        T diagonal0 = ZERO;
%     endif
% endif
% if diagonal_at_end and not unit:
        if (lane == 0 && (${" || ".join(f"magnitude(diagonal{i}) == 0" for i in members)}))
            atomic_or(state + SINGULAR, 1);
% endif
        long k = has_row ? lane : n_entries;
        uint polls = 0;
        if (k < n_entries) {
            int ${", ".join(f"j{slot}" for slot in slots)};
            T ${", ".join(loaded)};
            {
${load_entries("")}\
            }
            while (k < n_entries) {
                // The next entries are loaded before the wait.
                k += ${len(slots)} * lanes;
                int ${", ".join(f"next_j{slot}" for slot in slots)};
                T ${", ".join(f"next_{value}" for value in loaded)};
                {
${load_entries("next_")}\
                }
                // An entry that is not there has the value 0 and a finite unknown.
% for slot in slots:
                ${words} w${slot} = j${slot} < 0 ? NONE : 0;
% endfor
                bool waits;
                do {
% for slot in slots:
                    if (!IS_KNOWN(w${slot}))
                        w${slot} = LOAD(known + ((ulong)j${slot} * width + column_here) * ${parts});
% endfor
                    waits = !(${" && ".join(f"IS_KNOWN(w{slot})" for slot in slots)});
                } while (waits && ++polls < max_polls);
% for slot in slots:
%     for i in members:
                sum${i} -= times(v${slot}_${i}, T_FROM_BITS(w${slot}));
                v${slot}_${i} = next_v${slot}_${i};
%     endfor
                j${slot} = next_j${slot};
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
            if (magnitude(diagonal0) == 0)
                atomic_or(state + SINGULAR, 1);
%     if inverts:
            ${invert(0)}
%     endif
% endif
% for i in members:
%     for j in range(i):
            sum${i} -= times(coupling${i}_${j}, solution${j});
%     endfor
%     if inverts:
            T solution${i};
            if (is_usual${i})
                solution${i} = sum${i} * inverse${i};
            else
                solution${i} = sum${i} / diagonal${i};
%     else:
            const T solution${i} = ${f"sum{i}" if unit else f"quotient(sum{i}, diagonal{i})"};
%     endif
%     if i:
            if (${i} < size) {
                STORE(own_known + (ulong)${i * parts} * width, as_${words}(solution${i}));
                x[(ulong)row${i} * columns + column_of_x] = solution${i};
            }
%     else:
            STORE(own_known, as_${words}(solution0));
            x[(ulong)row * columns + column_of_x] = solution0;
%     endif
% endfor
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
