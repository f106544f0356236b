<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], a work-group to a part: work_group * items of its entries are read as one coalesced
stream, their products staged in local memory, and rows summed from there; a short row by one work-item, a longer one by X.
A part's sum of a row that an earlier part began goes to partial[part].

Kinds of parts: "staged", all entries of a part are staged; "rests", what follows a part's first `step` entries is the rest of its
last row, of which each work-item stages one sum; "even", a part has work_group * items entries, whatever rows it cuts. Loads of
the last two need not wait to know where a part begins and ends: "rests" loads entries of an earlier part's row, and ignores them.

Source        CSR-Adaptive: Greathouse and Daga, SC 2014 (CSR-Stream), and Daga and Greathouse, HiPC 2015 (its longer rows);
              the parts are made in parallel by partition.mako
Index space   n_parts work-groups
Inputs        part_row, part_entry: n_parts + 1 each, and part_cut, of partition.mako, with a step of at most work_group * items,
              and for even parts just that, row_weight 0 and slack 0; for rests step is 0 if rows weigh;
              columns in any order, duplicates allowed; rows may be empty
Local memory  work_group * items * sizeof(T) and a queue of longer rows; work_group * sizeof(T) for rests, and where X exceeds the
              lane width
Result        deterministic: a row is summed in the order that the parts give
</%doc>
<%
    capacity = work_group * items
    room = capacity + (work_group if parts == "rests" else 0)
    ahead = 4  # entries of a rest that a work-item reads together
    base = "base" if parts == "rests" else "begin"  # the entry that is staged first
    early = parts != "even"  # whether row ends are loaded with the entries: large parts have registers for those alone
%>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"
#include "spmv.cl"

// STAGED_FROM(k) and STAGED_TO(k): where a row's staged products begin and end in local memory, for its first entry and end k.
// STAGED_FROM and STAGED_TO are equal for a row of A that lies behind all entries staged in local memory.
#define STAGED_FROM(k) ((uint)min(max(k, begin) - ${base}, (I)count))
#define STAGED_TO(k) ((uint)min((k) - ${base}, (I)count))

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    const I n_entries,
% if parts == "rests":
    const uint step,
% endif
    global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict part_cut,
    global T *restrict partial, global const I *restrict indptr, global const I *restrict indices)
{
    local T products[${room}];
    local ${position} longer[${room // (short_row + 1) + 1}];
    local uint n_longer;
% if needs_box:
    local T box[${work_group}];
% else:
    local T *box = 0;
% endif
    global const X_VALUE *restrict x = x_base + x_offset;
    global T *restrict y = y_base + y_offset;
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
% if parts == "even":
    const I begin = (I)(part * ${capacity});
    const uint count = (uint)min(n_entries - begin, (I)${capacity});
% elif parts == "rests":
    const I begin = part_entry[part], behind = part_entry[part + 1];
    const I base = step ? (I)(part * step) : begin;
    const uint n_staged = (uint)min(step ? n_entries - base : behind - base, (I)(step ? step : ${capacity}u));
    // A part of A is empty if a row that an earlier part began covers the whole part.
    const uint total = begin < behind ? (uint)(behind - base) : 0, count = min(total, n_staged + ${work_group});
% else:
    const I begin = part_entry[part];
    const uint count = (uint)(part_entry[part + 1] - begin);
% endif
    // A part of A that begins inside a row sums the rest of that row, too.
    // Row numbers are unsigned, as the step to a later row may pass the largest number of the index type I.
    const ${position} row_begin = part_row[part], row_end = part_row[part + 1];
    ${position} row = row_begin - part_cut[part] + me;
% if early:
    I row_from = 0, row_to = 0;
% endif
% if parts == "rests":
    T rest = ZERO;
% endif

    // All loads of the part's entries are in flight before the first entry is used.
% if parts == "rests":
${stage("me + {} < n_staged")}
% else:
    if (count >= ${capacity}) {
${stage("true")}
    } else {
${stage("me + {} < count")}
    }
% endif
% if parts == "rests":
    if (total > n_staged) {
        for (uint k = n_staged + ${work_group} + me; k < total; k += ${ahead * work_group}) {
% for u in range(ahead):
            I column_${u} = 0;
            T a_${u} = ZERO;
            if (k + ${u * work_group} < total) {
                column_${u} = LOAD_INDEX(indices + base + (k + ${u * work_group}));
                a_${u} = LOAD_A(data + base + (k + ${u * work_group}));
            }
% endfor
% for u in range(ahead):
            if (k + ${u * work_group} < total)
                rest = ADD(rest, MULTIPLY(a_${u}, LOAD_X(x + column_${u})));
% endfor
        }
        products[n_staged + me] = rest;
    }
% endif
    if (me == 0)
        n_longer = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    while (row < row_end) {
% if not early:
        const I row_from = indptr[row], row_to = indptr[row + 1];
% endif
        const uint from = STAGED_FROM(row_from), to = STAGED_TO(row_to);
        if (to - from > ${short_row}) {
            longer[atomic_inc(&n_longer)] = row;
        } else {
            T sum = ZERO;
            for (uint k = from; k < to; ++k)
                sum = ADD(sum, products[k]);
            if (row < row_begin)
                partial[part] = sum;
            else
                update(SCALE_ARGUMENTS y + row, sum);
        }
        row += ${work_group};
% if early:
        if (row < row_end) {
            row_from = indptr[row];
            row_to = indptr[row + 1];
        }
% endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // Every lane (work-item of a row) takes the same number of turns of this loop, as lanes_reduce may have barriers.
    const uint n = n_longer;
    for (uint i = 0; i < n; i += ${work_group // lanes}) {
        const uint mine = i + me / ${lanes};
        const bool active = mine < n;
        row = active ? longer[mine] : 0;
        const uint from = active ? STAGED_FROM(indptr[row]) : 0, to = active ? STAGED_TO(indptr[row + 1]) : 0;
        T sum = ZERO;
        for (uint k = from + me % ${lanes}; k < to; k += ${lanes})
            sum = ADD(sum, products[k]);
        sum = lanes_reduce(box, sum, ${lanes});
        if (active && me % ${lanes} == 0) {
            if (row < row_begin)
                partial[part] = sum;
            else
                update(SCALE_ARGUMENTS y + row, sum);
        }
    }
}
<%def name="stage(is_there)">
% for u in range(items):
        I column_${u} = 0;
        T a_${u} = ZERO;
        if (${is_there.format(u * work_group)}) {
            column_${u} = LOAD_INDEX(indices + ${base} + (me + ${u * work_group}));
            a_${u} = LOAD_A(data + ${base} + (me + ${u * work_group}));
        }
% endfor
% if parts == "rests":
        I column_of_rest = 0;
        T a_of_rest = ZERO;
        if (me + n_staged < total) {
            column_of_rest = LOAD_INDEX(indices + base + (me + n_staged));
            a_of_rest = LOAD_A(data + base + (me + n_staged));
        }
% endif
% if parts == "staged":
        row_from = indptr[min(row, row_end)];
        row_to = indptr[min(row + 1, row_end)];
% elif early:
        if (row < row_end) {
            row_from = indptr[row];
            row_to = indptr[row + 1];
        }
% endif
% for u in range(items):
        if (${is_there.format(u * work_group)}${f" && base + (I)(me + {u * work_group}) >= begin" if parts == "rests" else ""})
            products[me + ${u * work_group}] = MULTIPLY(a_${u}, LOAD_X(x + column_${u}));
% endfor
% if parts == "rests":
        if (me + n_staged < total)
            rest = MULTIPLY(a_of_rest, LOAD_X(x + column_of_rest));
% endif
</%def>
