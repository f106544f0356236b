<%doc>
Rows of C by merging the rows of B that a row of A names: each step takes the smallest column over the heads of these rows, sums the
products of the heads that have it, and advances them. ${lanes} lanes have up to ${items} heads each.

Source        ${"reg-merge" if registers else "the local-memory form of reg-merge"}: Liu et al., Register-Aware SpGEMM, Section 3.2; heads are in ${"registers" if registers else "local memory"}
Index space   ${lanes} work-items to a row
Inputs        see spgemm.cl; rows of A with at most ${lanes * items} entries${f"; seen: n_sums + {4 + slots} zeros" if most else ""}
% if most:
Output        that no row was longer was guessed, nor named a row of B with more than ${most} entries${", nor had more products" if lanes == 1 else ""}. seen takes, behind
              a zero, the entries of C of as many work-groups as make a sum; then whether the guess was wrong, and so what is counted,
              the longest row of A, how many rows have no products, and in ${slots} parts how many products there are
% endif
Local memory  ${"none" if registers else f"{items} heads a work-item"}${f"; {outputs} entries of C a work-item: where those of all its rows fit, they go from there to C side by side" if outputs else ""}
% if inputs:
              and ${inputs} entries of B a work-group, which is one sub-group: rows of B that its rows name are read side by side,
              as far as they lie in a few ranges that fit; otherwise each work-item reads its own
% endif
Result        deterministic: products of a column are added in ${"the order of A's row" if lanes == 1 else "an order that A's row alone determines"}
</%doc>
<%! import functools %>\
<%
    # Columns that a team finds before it writes them: a lane of it gets each, so that they are written side by side.
    turn = min(lanes, 4)
    heads = range(items) if registers else ("u",)
    min_of = lambda names: functools.reduce(lambda a, b: f"min({a}, {b})", names)
    each_head = "" if registers else "for (uint u = 0; u < n_heads; ++u) "
%>\
#include "spgemm.cl"
% if lanes > 1:
#define M COLUMN
#define MIN_LANES ${lanes}
#include "lanes_min.cl"
% if not symbolic:
#include "lanes_xor.cl"
% endif
% elif inputs:
#define M uint
#define MIN_LANES ${lane_width}
#include "lanes_min.cl"
% endif
// Of head u: the column that it has, where that is in B, how many entries its row has from there on, and the factor from A.
% if registers:
#define COLUMN_OF(u) column_##u
#define AT(u) at_##u
#define LEFT(u) left_##u
#define FACTOR(u) factor_##u
% else:
#define COLUMN_OF(u) columns[(u) * ${work_group} + me]
#define AT(u) at[(u) * ${work_group} + me]
#define LEFT(u) left[(u) * ${work_group} + me]
#define FACTOR(u) factors[(u) * ${work_group} + me]
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS${", global uint *restrict seen, const uint n_sums, const uint groups_to_sum" if most else ""})
{
% if not registers:
    local COLUMN columns[${items * work_group}], left[${items * work_group}];
    local I at[${items * work_group}];
% if not symbolic:
    local T factors[${items * work_group}];
% endif
% endif
% if outputs:
    // Entries of C, where those of all rows fit. TILE leaves gaps, so that work-items do not meet in a bank.
#define TILE(i) ((i) + (i) / 32)
% if not values_only:
    local COLUMN tile_columns[TILE(${work_group * outputs})];
% endif
    local T tile[TILE(${work_group * outputs})];
% endif
% if inputs:
    // One more than are used: where a row ends, what lies behind it is loaded, too.
    local COLUMN input_columns[${inputs + 1}];
    local X_VALUE input_values[${inputs + 1}];
% endif
% if outputs or inputs or not registers:
    const uint me = get_local_id(0);
% endif
% if most:
    // What each work-item saw: its products in 13 bits, the length of its row in as many, whether it is empty, and whether the guess
    // was wrong. Then what the work-group did.
    local uint box[${work_group}], entries_box[${work_group}], longest, n_products_of_all, n_entries_of_all, n_empty, any_wrong;
    if (get_local_id(0) == 0)
        longest = n_products_of_all = n_entries_of_all = n_empty = any_wrong = 0;
    global uint *const told = seen + n_sums + 1;
% endif
    const uint lane = get_local_id(0) % ${lanes};
    const ulong slot = get_global_id(0) / ${lanes};
    // No early return: every lane takes part in exchanges and barriers.
    const bool active = slot < n_rows${" && !*(volatile global uint *)told" if most else ""};
    const ulong row = active ? SPGEMM_ROW(slot) : 0;
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;
% if most:
    bool wrong = length > ${lanes * items};
    uint n_products = 0;
% endif
% if not registers:
    const uint n_heads = (length + ${lanes - 1} - lane) / ${lanes};
% endif
% for u in heads:
% if registers:
    I at_${u} = 0;
    COLUMN left_${u} = 0, column_${u} = NO_COLUMN;
% if not symbolic:
    T factor_${u} = ZERO;
% endif
% if inputs:
    uint named_${u} = UINT_MAX;
% endif
    if (${u * lanes} + lane < length) {
% else:
    ${each_head}{
% endif
        const I a = begin + (I)(${u}${f" * {lanes}" if lanes > 1 else ""} + lane), k = a_indices[a];
        AT(${u}) = b_indptr[k];
        LEFT(${u}) = (COLUMN)(b_indptr[k + 1] - b_indptr[k]);
% if most:
        if (LEFT(${u}) > ${most}) {
            wrong = true;
            LEFT(${u}) = 0;
        }
        n_products += (uint)LEFT(${u});
% endif
% if inputs:
        named_${u} = (uint)k;
% else:
${starts("        ", u)}\
% endif
% if not symbolic:
        FACTOR(${u}) = from_a(a_data[a]);
% endif
    }
% endfor

% if symbolic:
    uint count = 0;
% else:
    C_INDEX place = active ? c_indptr[row] : 0;
    const C_INDEX end = active ? c_indptr[row + 1] : 0;
% endif
% if outputs:
    // The rows are neighbours, and so are their entries in C.
    const ulong first_row = (ulong)get_group_id(0) * ${work_group};
    const C_INDEX to = c_indptr[min(first_row, n_rows)], n_found = c_indptr[min(first_row + ${work_group}, n_rows)] - to;
    const bool staged_c = n_found <= ${work_group * outputs};
% endif
% if inputs:
    // Rows of B, range by range from the first that is in none yet, as long as there are such and they fit.
    uint filled = 0, least;
    for (uint range = 0; ; ++range) {
        least = ${min_of(f"named_{u}" for u in heads)};
        least = lanes_min(least);
        if (least == UINT_MAX || range == ${ranges})
            break;
        uint greatest = least;
% for u in heads:
        greatest = named_${u} - least < ${2 * lane_width} ? max(greatest, named_${u}) : greatest;
% endfor
        greatest = ~lanes_min(~greatest);
        const I from = b_indptr[least];
        const uint n = (uint)(b_indptr[greatest + 1] - from);
        if (n > ${inputs} - filled)
            break;
% for u in heads:
        if (named_${u} - least < ${2 * lane_width}) {
            AT(${u}) += (I)filled - from;
            named_${u} = UINT_MAX;
        }
% endfor
        // Several loads at a time, whose latencies pass together.
        for (uint i = me; i < n; i += ${8 * lane_width}) {
% for k in range(8):
            const bool has_${k} = i + ${k * lane_width} < n;
            const I b_${k} = from + (I)(has_${k} ? i + ${k * lane_width} : 0);
            const COLUMN column_read_${k} = (COLUMN)b_indices[b_${k}];
            const X_VALUE value_read_${k} = b_data[b_${k}];
% endfor
% for k in range(8):
            if (has_${k}) {
                input_columns[filled + i + ${k * lane_width}] = column_read_${k};
                input_values[filled + i + ${k * lane_width}] = value_read_${k};
            }
% endfor
        }
        filled += n;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (least == UINT_MAX) {
        // LEFT is where a row ends from here on.
% for u in heads:
        LEFT(${u}) += (COLUMN)AT(${u});
% endfor
${alone("        ", True)}\
    } else {
        // Those that were placed go back.
% for u in heads:
        if (${u} < length)
            AT(${u}) = b_indptr[a_indices[begin + ${u}]];
${starts("        ", u)}\
% endfor
${alone("        ", False)}\
    }
% elif lanes == 1:
${alone("    ", False)}\
% else:
    bool more = true;
    do {
% if not symbolic:
        T ${", ".join(f"sum_{k} = ZERO" for k in range(turn))};
% if not values_only:
        COLUMN mine = NO_COLUMN;
% endif
% endif
        for (uint i = 0; i < ${turn}; ++i) {
% if values_only:
            const COLUMN smallest = place + (C_INDEX)i < end ? (COLUMN)c_indices[place + (C_INDEX)i] : NO_COLUMN;
% else:
${find("            ")}\
            smallest = lanes_min(smallest);
% endif
            const bool found = smallest != NO_COLUMN;
${add("            ", False)}\
% if symbolic:
            count += found;
            more = found;
% else:
% if not values_only:
            mine = lane == i ? smallest : mine;
% endif
% for k in range(turn):
            sum_${k} = i == ${k} ? sum : sum_${k};
% endfor
% endif
        }
% if not symbolic:
        // Sums over the lanes, of which lane i gets that of the turn's column i: lanes hand on half of what they have at each step.
% for half in [1 << b for b in reversed(range(turn.bit_length() - 1))]:
% for k in range(half):
        {
            const bool upper = lane & ${half};
            const T other = lanes_xor(upper ? sum_${k} : sum_${k + half}, ${half});
            sum_${k} = ADD(upper ? sum_${k + half} : sum_${k}, other);
        }
% endfor
% endfor
        for (uint m = ${turn}; m < ${lanes}; m *= 2)
            sum_0 = ADD(sum_0, lanes_xor(sum_0, m));
        if (lane < ${turn} && place + (C_INDEX)lane < end) {
% if not values_only:
            c_indices[place + (C_INDEX)lane] = (C_INDEX)mine;
% endif
            c_data[place + (C_INDEX)lane] = sum_0;
        }
        place += ${turn};
        more = place < end;
% endif
        // Lanes of a sub-group stay together until all its teams are done.
    } while (sub_group_min(more ? 0 : NO_COLUMN) != NO_COLUMN);
% endif
% if symbolic:
    if (active && lane == 0)
        counts[row] = count;
% endif
% if most:
    wrong = wrong${f" || n_products > {most}" if lanes == 1 else ""};
    const bool empty = active && lane == 0 && count == 0;
    box[get_local_id(0)] = (uint)(active && wrong) << 27 | (uint)empty << 26 | min(length, 8191u) << 13 | n_products;
    entries_box[get_local_id(0)] = active && lane == 0 ? count : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    // One work-item in sixteen goes through it.
    if (get_local_id(0) % 16 == 0) {
        uint products_seen = 0, entries_seen = 0, longest_seen = 0, empty_seen = 0, wrong_seen = 0;
        for (uint i = get_local_id(0); i < min((uint)get_local_id(0) + 16, ${work_group}u); ++i) {
            const uint it = box[i];
            products_seen += it & 8191;
            entries_seen += entries_box[i];
            longest_seen = max(longest_seen, it >> 13 & 8191);
            empty_seen += it >> 26 & 1;
            wrong_seen |= it >> 27;
        }
        atomic_add(&n_products_of_all, products_seen);
        atomic_add(&n_entries_of_all, entries_seen);
        atomic_max(&longest, longest_seen);
        atomic_add(&n_empty, empty_seen);
        atomic_or(&any_wrong, wrong_seen);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        if (any_wrong)
            atomic_or(told, 1);
        if (longest > *(volatile global uint *)(told + 1))
            atomic_max(told + 1, longest);
        if (n_empty)
            atomic_add(told + 2, n_empty);
        if (n_products_of_all) {
            atomic_add(told + 3 + get_group_id(0) % ${slots}, n_products_of_all);
            atomic_add(seen + 1 + get_group_id(0) / groups_to_sum, n_entries_of_all);
        }
    }
% endif
% if outputs:
    barrier(CLK_LOCAL_MEM_FENCE);
    if (staged_c) {
        for (uint i = me; i < (uint)n_found; i += ${work_group}) {
% if not values_only:
            c_indices[to + (C_INDEX)i] = (C_INDEX)tile_columns[TILE(i)];
% endif
            c_data[to + (C_INDEX)i] = tile[TILE(i)];
        }
    }
% endif
}
<%def name="find(indent)">\
${indent}COLUMN smallest = NO_COLUMN;
% for u in heads:
${indent}${each_head}smallest = min(smallest, COLUMN_OF(${u}));
% endfor
</%def>
<%def name="starts(indent, u)">\
${indent}COLUMN_OF(${u}) = LEFT(${u}) ? (COLUMN)b_indices[AT(${u})] : NO_COLUMN;
</%def>
<%def name="add(indent, staged)">\
% if not symbolic:
${indent}T sum = ZERO;
% endif
% for u in heads:
${indent}${each_head}if (COLUMN_OF(${u}) == smallest${" && found" if lanes > 1 else ""}) {
% if not symbolic:
${indent}    sum = ADD(sum, MULTIPLY(FACTOR(${u}), ${f"value_{u}" if staged else f"from_x(b_data[AT({u})])"}));
% endif
${indent}    ++AT(${u});
% if not staged:
${indent}    COLUMN_OF(${u}) = --LEFT(${u}) ? (COLUMN)b_indices[AT(${u})] : NO_COLUMN;
% endif
${indent}}
% endfor
</%def>
<%def name="alone(indent, staged)">\
% if symbolic:
${indent}for (;; ++count) {
% else:
${indent}for (; place < end; ++place) {
% endif
% if staged:
${indent}    // Whether heads advance or not: local memory is near, and no load waits for another.
% for u in heads:
${indent}    COLUMN_OF(${u}) = AT(${u}) < (I)LEFT(${u}) ? input_columns[AT(${u})] : NO_COLUMN;
${indent}    const T value_${u} = from_x(input_values[AT(${u})]);
% endfor
% endif
${find(indent + "    ")}\
% if symbolic:
${indent}    if (smallest == NO_COLUMN)
${indent}        break;
% endif
${add(indent + "    ", staged)}\
% if outputs:
${indent}    if (staged_c) {
${indent}        const uint in_tile = TILE((uint)(place - to));
% if not values_only:
${indent}        tile_columns[in_tile] = smallest;
% endif
${indent}        tile[in_tile] = sum;
${indent}        continue;
${indent}    }
% endif
% if not symbolic:
% if not values_only:
${indent}    c_indices[place] = (C_INDEX)smallest;
% endif
${indent}    c_data[place] = sum;
% endif
${indent}}
</%def>
