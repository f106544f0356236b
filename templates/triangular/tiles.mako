<%doc>
Solve a triangular system of a stencil on a grid by one launch, in tiles: boxes of points, in coordinates in which tiles depend on
tiles of smaller coordinates alone. A work-group takes one tile after another by tickets, so that it waits only for tiles that
have begun. It loads the tile's entries into local memory; then its first work-items, the solvers, go along a line of points each,
and take the unknowns that they need from local memory, where the other work-items, the fetchers, bring those of other tiles. An
unknown is its own flag: its bits are 0 until it is known, and a 0 is kept as -0. Solvers wait for each other in one loop, in each
turn of which a solver solves a point if all that it needs is known, and goes on. A work-item that has waited for max_polls turns
gives up: STARVED is set, and no tile begins. Then the last work-group to end goes through all tiles anew, with barriers in place
of waiting.

Source        Wolfe, "Loop skewing: the wavefront method revisited"; Irigoin and Triolet, "Supernode partitioning": tiles; Liu,
              Li, Hogg, Duff and Vinter, "A synchronization-free algorithm for parallel sparse triangular solves"; Smith, Levien
              and Owens, "Decoupled fallback": bounded waiting
Index space   n_groups work-groups that share the tiles, each of `lines` solvers, and fetchers; at_once columns of a
              tile are solved one after another
Inputs        tiles: the least coordinates x, y, z of each, skewed; grid of n points: nx a line, plane a plane; indptr; masks: see
              triangular/stencil_masks; values; b: its entry (i, j) at b_begin + i * b_row + j * b_column; columns first_column up
              to first_column + width - 1 of `columns`. `offsets`, `skew`: see Stencil in grids.py; `tile`: extents of a tile
Output        x: n x columns, row by row; state, all 0 before: N_STATES numbers, then the unknowns that other tiles need, of
              n x width. SINGULAR: 1 if a diagonal entry is 0; STARVED: 1 if a work-item gave up; TICKET: tiles that have begun,
              below 2^31; ENDED: work-groups that have ended
Local memory  as `Tiles.n_local_bytes` says
Result        deterministic: an unknown's entries are subtracted in their order
</%doc>
<%namespace name="flags" file="triangular/sync_free"/>\
<%
    tx, ty, tz = tile
    a, b, c = skew
    points = tx * ty * tz
    hx, hy, hz = (max(-offset[i] for offset in offsets) for i in range(3))
    pitch, rows = tx + hx + (tx + hx) % 2, ty + hy
    def cell_of(point):
        """The place of a point in the array of unknowns: of a tile, with those of other tiles that it needs."""
        return f"((({point}.z + {hz}) * {rows} + {point}.y + {hy}) * {pitch} + {point}.x + {hx})"
    n_cells = pitch * rows * (tz + hz)
    box = [(x, y, z) for z in range(tz) for y in range(ty) for x in range(tx)]
    needed = {tuple(p + d for p, d in zip(point, offset)) for point in box for offset in offsets} - set(box)
    # In the order in which solvers need them.
    needed = sorted(needed, key=lambda point: (sum(point), point))
    fetchers = work_group - lines
    # Rows that a work-item loads at once.
    batch = 8
    slots = range(len(offsets))
    inverts = not (unit or is_complex)
    # The numbers of the point that a solver is at: those of the next are loaded a turn ahead.
    entries = ["right", *([] if unit else ["diagonal"]), *(f"coefficient{s}" for s in slots), "mask"]
%>\
<%def name="find_point(i, row)">\
{
                // The i-th point of the tile, line by line.
                const int line = ${i} / ${tx}, z = least.z + line / ${ty}, y = least.y + line % ${ty} - ${c} * z;
                const int x = least.x + ${i} % ${tx} - ${a} * y - ${b} * z, place = z * plane + y * nx + x;
                if (${i} < ${points} && x >= 0 && x < nx && y >= 0 && (y + 1) * nx <= plane && place < n)
                    ${row} = ${"n - 1 - place" if upper else "place"};
            }
</%def>\
<%def name="load_next()">\
            // Entries are loaded a turn ahead, and those of points that are not there have the cell NO_POINT.
            i = own_line + min(at + 1, ${tx - 1});
            next_mask = present[i];
            next_right = rights[i];
% if not unit:
            next_diagonal = diagonals[i];
% endif
% for s in slots:
            next_coefficient${s} = coefficients[${s * points} + i];
% endfor
</%def>\
<%def name="go_to(ready)">\
% for value in entries:
            ${value} = ${f"{ready} ? next_{value} : {value}" if ready else f"next_{value}"};
% endfor
% for s in slots:
<% x, y, z = offsets[s] %>\
            cell${s} = mask & ${1 << s}u ? own_cells + at + ${(z * rows + y) * pitch + x} : NO_POINT;
% endfor
</%def>\
<%def name="solve_point()">\
% for s in slots:
                const ${words} w${s} = LOAD(cells + cell${s} * ${parts});
% endfor
                const bool is_ready = ${" && ".join(f"IS_KNOWN(w{s})" for s in slots)};
                T sum = right;
% for s in slots:
                sum -= times(coefficient${s}, T_FROM_BITS(w${s}));
% endfor
% if inverts:
                T solution = sum * diagonal;
                if (mask & DIVIDES)
                    solution = sum / diagonal;
% else:
                const T solution = ${"sum" if unit else "quotient(sum, diagonal)"};
% endif
                const ${words} bits = as_${words}(solution);
                // No branch parts the solvers: what is not known stays 0.
% for part, word_of in enumerate(['bits'] if parts == 1 else ['bits.x', 'bits.y']):
                cells[(own_cells + at) * ${parts} + ${part}] = is_ready ? KEEP(${word_of}) : 0;
% endfor
                if (is_ready && (line_is_needed || at >= ${tx - hx}))
                    STORE(known + ((ulong)(origin + at) * width + column_here) * ${parts}, bits);
                at += is_ready;
</%def>\
<%def name="find_needed()">\
            needed = convert_int4(NEEDED[min(fetched, N_NEEDED - 1)]);
            needed_z = least.z + needed.z;
            needed_y = least.y + needed.y - ${c} * needed_z;
            needed_x = least.x + needed.x - ${a} * needed_y - ${b} * needed_z;
            needed_place = needed_z * plane + needed_y * nx + needed_x;
            exists = needed_z >= 0 && needed_y >= 0 && (needed_y + 1) * nx <= plane && needed_x >= 0 && needed_x < nx
                && needed_place < n;
</%def>\
<%def name="fetch()">\
                ${words} found = NONE;
                if (exists)
                    found = LOAD(known + ((ulong)needed_place * width + column_here) * ${parts});
                const bool is_found = IS_KNOWN(found);
                if (is_found) {
                    STORE(cells + ${cell_of("needed")} * ${parts}, found);
                    fetched += ${fetchers};
                    ${find_needed()}
                }
</%def>\
// The states of a solution: numbers of 32 bits.
#define SINGULAR 0
#define STARVED 1
#define TICKET 2
#define ENDED 3
#define N_STATES 4
${flags.define_words(word, parts, item_bytes)}\
% if inverts:
${flags.define_limits(parts * 8 == item_bytes)}\
% endif
// A mask's bit: the diagonal entry is kept, and not its inverse.
#define DIVIDES (1u << 31)
// All unknowns of a tile are known after so many turns, if those of other tiles are: each turn solves at least a diagonal plane.
#define N_TURNS ${tx + ty + tz}
// The cell of points that are not there, known to be finite.
#define NO_POINT ${n_cells}
#define N_NEEDED ${len(needed)}
constant char4 NEEDED[] = {${", ".join(f"({x}, {y}, {z}, 0)".replace("(", "(char4)(", 1) for x, y, z in needed)}};

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_tiles, const uint width, const uint at_once, const ulong columns, const ulong first_column,
    const uint max_polls, const int n_groups, const int n, const int nx, const int plane, global const int4 *restrict tiles,
    global const I *restrict indptr, global const uint *restrict masks, global const T *restrict values,
    global const T *restrict b, const long b_begin, const long b_row, const long b_column, global T *x_out,
    volatile global int *state)
{
    const int me = get_local_id(0);
    const bool is_solver = me < ${lines};
    const int ly = is_solver ? me % ${ty} : 0, lz = is_solver ? me / ${ty} : 0;
    // Blocks of adjacent columns: a ticket is a tile for a block.
    const uint n_blocks = (width - 1) / at_once + 1, n_tickets = n_tiles * n_blocks;
    volatile global ${word} *known = (volatile global ${word} *)(state + N_STATES);
    local uint next;
    local int gave_up, is_last;
    local T coefficients[${max(len(slots), 1) * points}], rights[${points}];
% if not unit:
    local T diagonals[${points}];
% endif
    local uint present[${points}];
    volatile local ${word} cells[${(n_cells + 1) * parts}];
    if (me == 0) {
        gave_up = 0;
        next = atomic_inc(state + TICKET);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    bool finishes = false;
    uint ticket = next;
    while (true) {
        if (ticket >= n_tickets) {
            // The last work-group to end goes through all tiles anew, if a work-item gave up.
            if (finishes)
                return;
            barrier(CLK_GLOBAL_MEM_FENCE);
            if (me == 0)
                is_last = atomic_inc(state + ENDED) == n_groups - 1;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (!is_last || !state[STARVED])
                return;
            finishes = true;
            ticket = 0;
        }
        const uint number = ticket / n_blocks, first_here = (ticket - number * n_blocks) * at_once;
        const int4 least = tiles[number];
        barrier(CLK_LOCAL_MEM_FENCE);
        // The next ticket is taken ahead: this work-group ends this tile first, which waits for earlier tickets only.
        if (me == 0)
            next = finishes ? ticket + 1 : (uint)atomic_inc(state + TICKET);
        // All rows of a work-item are loaded before their values are, so that it waits twice.
% for first in range(0, points, batch * work_group):
        {
% for u in range(first // work_group, min((first // work_group) + batch, -(-points // work_group))):
            const int i${u} = me + ${u * work_group};
            int row${u} = -1;
            ${find_point(f"i{u}", f"row{u}")}
            const uint mask${u} = row${u} < 0 ? 0 : masks[row${u}];
            const I begin${u} = row${u} < 0 ? 0 : indptr[row${u}];
            const T right${u} = row${u} < 0 ? ZERO : b[b_begin + row${u} * b_row + (long)(first_column + first_here) * b_column];
% endfor
% for u in range(first // work_group, min((first // work_group) + batch, -(-points // work_group))):
            if (row${u} >= 0) {
                uint mask = mask${u};
                I k = begin${u}${" + 1" if upper else ""};
                rights[i${u}] = right${u};
% for s in slots:
                coefficients[${s * points} + i${u}] = mask & ${1 << s}u ? values[k] : ZERO;
                k += mask >> ${s} & 1;
% endfor
% if not unit:
                const T diagonal = values[${f"begin{u}" if upper else "k"}];
                const R size = magnitude(diagonal);
                if (size == 0)
                    atomic_or(state + SINGULAR, 1);
%     if inverts:
                const bool is_usual = size > LEAST && size < GREATEST;
                diagonals[i${u}] = is_usual ? 1 / diagonal : diagonal;
                if (!is_usual)
                    mask |= DIVIDES;
%     else:
                diagonals[i${u}] = diagonal;
%     endif
% endif
                present[i${u}] = mask;
            } else if (i${u} < ${points})
                present[i${u}] = 0;
% endfor
        }
% endfor
        // The solver's line: its points in the tile, at places of the grid that begin with `origin`.
        const int z = least.z + lz, y = least.y + ly - ${c} * z, skipped = least.x - ${a} * y - ${b} * z;
        const int origin = z * plane + y * nx + skipped;
        const bool has_line = is_solver && y >= 0 && (y + 1) * nx <= plane;
        const int end = has_line ? min(min(nx - skipped, ${tx}), n - origin) : 0;
        const int own_line = (lz * ${ty} + ly) * ${tx}, own_cells = ((lz + ${hz}) * ${rows} + ly + ${hy}) * ${pitch} + ${hx};
        // Unknowns of the ends of a tile are needed by other tiles.
        const bool line_is_needed = ly >= ${ty - hy} || lz >= ${tz - hz};
        for (uint column_here = first_here; column_here < min(first_here + at_once, width); ++column_here) {
            const ulong column = first_column + column_here;
            if (column_here > first_here) {
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int i = me; i < ${points}; i += ${work_group}) {
                    int row = -1;
                    ${find_point("i", "row")}
                    if (row >= 0)
                        rights[i] = b[b_begin + row * b_row + (long)column * b_column];
                }
            }
            for (int i = me; i < ${(n_cells + 1) * parts}; i += ${work_group})
                cells[i] = i >= ${n_cells * parts};
            barrier(CLK_LOCAL_MEM_FENCE);
            int at = has_line ? max(-skipped, 0) : 0;
            uint polls = 0, mask, next_mask;
            int i, ${", ".join(f"cell{s}" for s in slots)};
            T ${", ".join(f"{value}, next_{value}" for value in entries[:-1])};
            int fetched = is_solver ? N_NEEDED : me - ${work_group - fetchers}, needed_x, needed_y, needed_z, needed_place;
            int4 needed;
            bool exists;
            --at;
${load_next()}\
            ++at;
${go_to("")}\
${load_next()}\
${find_needed()}\
            if (is_solver) {
                while (at < end && !finishes && polls < max_polls) {
${solve_point()}\
                    polls = is_ready ? 0 : polls + 1;
${go_to("is_ready")}\
${load_next()}\
                }
            } else {
                while (fetched < N_NEEDED && (finishes || polls < max_polls)) {
${fetch()}\
                    polls = is_found ? 0 : polls + 1;
                }
            }
            for (int turn = 0; finishes && turn < N_TURNS; ++turn) {
                barrier(CLK_LOCAL_MEM_FENCE);
                if (at < end) {
${solve_point()}\
${go_to("is_ready")}\
${load_next()}\
                }
            }
            if (polls >= max_polls && (at < end || fetched < N_NEEDED))
                gave_up = 1;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (gave_up && !finishes)
                break;
            for (int i = me; i < ${points}; i += ${work_group}) {
                const int line = i / ${tx}, own_row = (line / ${ty} + ${hz}) * ${rows} + line % ${ty} + ${hy};
                const int cell = own_row * ${pitch} + i % ${tx} + ${hx};
                int row = -1;
                ${find_point("i", "row")}
                if (row >= 0)
                    x_out[(ulong)row * columns + column] = T_FROM_BITS(LOAD(cells + cell * ${parts}));
            }
        }
        if (finishes)
            barrier(CLK_GLOBAL_MEM_FENCE);
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
