<%doc>
values[e] = X[row] . Y[column] for each entry e of a pattern: a product of dense matrices, at the places of a sparse one, with a
number of values to a row that the kernel knows. Teams of `lanes` consecutive work-items take `entries` entries at a time, whose
loads are all in flight, each lane `items` adjacent values of a row at a time. If `by_rows` a team takes a row of the pattern, and
has the row of X in registers: on grids neighbouring teams then ask for neighbouring rows of Y at the same time. Else a work-group
takes `span` adjacent entries, `room` at a time, whose rows and columns it notes in local memory.

Source        own; sampled dense-dense matrix multiplication
Index space   teams of lanes; if `by_rows` one to a row, else a work-group has `span` entries
Inputs        indptr and columns; X and Y with n_inner = `inner` adjacent values to a row, x_step and y_step values apart; rows
              begin at multiples of `items` values, of which they have a whole number
Local memory  if not `by_rows`, a row and a column for each of `room` entries; lanes of an entry exchange within a sub-group
Result        deterministic: products are always added in the same order
</%doc>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"
#include "row_of.cl"
#include "vectors.cl"
<%
    steps = -(-inner // (lanes * items))
    # After the exchange: entries whose sums a lane has, and lanes that have the sum of the same entry.
    per_lane, lanes_per_entry = max(entries // lanes, 1), max(lanes // entries, 1)
%>
<%def name="load(kind, base, step)">\
% if (step + 1) * lanes * items > inner:
(lane < ${(inner - step * lanes * items) // items} ? *(global const ${kind}${items} *)(${base} + ${step * lanes * items}) : (${kind}${items})0)\
% else:
*(global const ${kind}${items} *)(${base} + ${step * lanes * items})\
% endif
</%def>
## The sums of entries: lanes exchange half of their sums until a lane has the sums of its own entries alone.
<%def name="sum_entries(a, count, first)">
% for u in range(entries):
            ${t_value}${items} sum_${u} = convert_${t_value}${items}(${a(u, 0)}) * convert_${t_value}${items}(b_${u}_0);
% for s in range(1, steps):
            sum_${u} += convert_${t_value}${items}(${a(u, s)}) * convert_${t_value}${items}(b_${u}_${s});
% endfor
% for v in range(1, items):
            sum_${u}.s0 = ADD(sum_${u}.s0, sum_${u}.s${f"{v:x}"});
% endfor
            T own_${u} = sum_${u}.s0;
% endfor
<% step, n_sums = lanes // 2, entries %>
% while step:
% if n_sums > 1:
<% n_sums //= 2 %>
% for u in range(n_sums):
            {
                const T sent = lane & ${step} ? own_${u} : own_${u + n_sums}, retained = lane & ${step} ? own_${u + n_sums} : own_${u};
                own_${u} = ADD(retained, lanes_xor(sent, ${step}));
            }
% endfor
% else:
            own_0 = ADD(own_0, lanes_xor(own_0, ${step}));
% endif
<% step //= 2 %>
% endwhile
% for u in range(per_lane):
            if (${first} + lane / ${lanes_per_entry} * ${per_lane} + ${u} < ${count} && lane % ${lanes_per_entry} == 0)
                values[${first} + lane / ${lanes_per_entry} * ${per_lane} + ${u}] = own_${u};
% endfor
</%def>

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const A_VALUE *restrict x_base, global const X_VALUE *restrict y_base, const ulong y_offset,
    global T *restrict values, const ulong values_offset,
    const ulong n, const I n_rows, const ulong n_inner, const ulong span, const ulong x_offset, const ulong x_step, const ulong y_step,
    global const I *restrict indptr, global const I *restrict columns)
{
    values += values_offset;
    const uint me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes};
    x_base += x_offset + lane * ${items};
    y_base += y_offset + lane * ${items};
% if by_rows:
    // Teams of lanes behind the last row take that row without entries: a sub-group's lanes exchange sums, so turns are equal.
    const ulong row = get_group_id(0) * ${work_group // lanes}ul + team, of_x = min(row, (ulong)n_rows - 1);
    const ulong begin = indptr[of_x], end = row < (ulong)n_rows ? (ulong)indptr[of_x + 1] : begin;
% for s in range(steps):
    const ${a_value}${items} a_${s} = ${load(a_value, "x_base + of_x * x_step", s)};
% endfor
    uint longest = (uint)(end - begin);
#if LANE_WIDTH > 1
    for (uint m = ${lanes}; m < LANE_WIDTH; m *= 2)
        longest = max(longest, lanes_xor_u32(longest, m));
#endif
    for (uint turn = 0; turn < longest; turn += ${entries}) {
        const ulong e = begin + turn;
% for u in range(entries):
        const I column_${u} = e + ${u} < end ? columns[e + ${u}] : 0;
% endfor
% for u in range(entries):
        global const X_VALUE *restrict y_${u} = y_base + (ulong)column_${u} * y_step;
% for s in range(steps):
        const ${x_value}${items} b_${u}_${s} = ${load(x_value, f"y_{u}", s)};
% endfor
% endfor
${sum_entries(lambda u, s: f"a_{s}", "end", "e")}
    }
% else:
    local I row_of_entry[${room}], column_of_entry[${room}];
    const ulong begin = get_group_id(0) * span, end = min(n, begin + span);
    I row = row_of(indptr, 0, n_rows - 1, n_rows / 2 + 1, (I)begin);
    for (ulong from = begin; from < end; from += ${room}) {
        const uint count = (uint)min(end - from, (ulong)${room});
        if (from > begin) {
            row = row_of_entry[${room - 1}];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (uint i = me; i < count; i += ${work_group}) {
            row = row_of(indptr, row, n_rows - 1, 1, (I)(from + i));
            row_of_entry[i] = row;
            column_of_entry[i] = columns[from + i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // All teams of lanes take equally many turns, as lanes exchange sums: teams beyond the last entry repeat this entry.
        for (uint turn = 0; turn < count; turn += ${work_group // lanes * entries}) {
            const ulong e = from + turn + team * ${entries};
% for u in range(entries):
            const uint i_${u} = min(turn + team * ${entries} + ${u}, count - 1);
            const I row_${u} = row_of_entry[i_${u}];
            global const X_VALUE *restrict y_${u} = y_base + (ulong)column_of_entry[i_${u}] * y_step;
% for s in range(steps):
            const ${x_value}${items} b_${u}_${s} = ${load(x_value, f"y_{u}", s)};
% endfor
% endfor
% for u in range(entries):
% for s in range(steps):
% if u == 0:
            const ${a_value}${items} a_0_${s} = ${load(a_value, "x_base + (ulong)row_0 * x_step", s)};
% else:
            ${a_value}${items} a_${u}_${s} = a_${u - 1}_${s};
% endif
% endfor
% if u:
            if (row_${u} != row_${u - 1}) {
% for s in range(steps):
                a_${u}_${s} = ${load(a_value, f"x_base + (ulong)row_{u} * x_step", s)};
% endfor
            }
% endif
% endfor
${sum_entries(lambda u, s: f"a_{u}_{s}", "from + count", "e")}
        }
    }
% endif
}
