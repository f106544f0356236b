<%doc>
values[e] = X[row] . Y[column] for each entry e of a pattern: a product of dense matrices, at the places of a sparse one. A
work-group takes adjacent entries, as rows that follow one another share columns. `lanes` consecutive work-items take `entries`
entries at a time, and each work-item `items` adjacent values of the rows; entries of one row of X share the loads of that row.
The row of a work-group's first entry is searched for among all rows, the row of a later entry from the row of the entry before.

Source        own; sampled dense-dense matrix multiplication
Index space   teams of lanes; a work-group has `span` entries
Inputs        indptr and columns; X and Y with n_inner adjacent values to a row, x_step and y_step values apart; with loads
              "aligned", rows begin at multiples of `items` values
Local memory  none; lanes of an entry exchange within a sub-group
Result        deterministic: products are always added in the same order
</%doc>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"
#include "row_of.cl"
<%
    vectors = loads != "single"
    first = ".s0" if vectors else "_0"
    pointer = {
        "aligned": lambda kind, p: f"*(global const {kind}{items} *)({p})",
        "vectors": lambda kind, p: f"vload{items}(0, {p})",
    }.get(loads)
%>
#include "vectors.cl"
<%def name="products(shared)">
        ulong k = lane * ${items}ul;
        for (; k + ${items - 1} < n_inner; k += ${lanes * items}) {
% if vectors:
% for e in range(entries):
% if e == 0 or not shared:
            const ${t_value}${items} a_${e} = convert_${t_value}${items}(${pointer(a_value, f"x_{e} + k")});
% endif
            const ${t_value}${items} b_${e} = convert_${t_value}${items}(${pointer(x_value, f"y_{e} + k")});
% endfor
% for e in range(entries):
            sum_${e} += a_${0 if shared else e} * b_${e};
% endfor
% else:
% for e in range(entries):
% for u in range(items):
            sum_${e}_${u} = ADD(sum_${e}_${u}, MULTIPLY(from_a(x_${0 if shared else e}[k + ${u}]), from_x(y_${e}[k + ${u}])));
% endfor
% endfor
% endif
        }
        for (; k < n_inner && k % ${lanes * items} / ${items} == lane; ++k) {
% for e in range(entries):
            sum_${e}${first} = ADD(sum_${e}${first}, MULTIPLY(from_a(x_${0 if shared else e}[k]), from_x(y_${e}[k])));
% endfor
        }
</%def>

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const A_VALUE *restrict x_base, global const X_VALUE *restrict y_base, const ulong y_offset,
    global T *restrict values, const ulong values_offset,
    const ulong n, const I n_rows, const ulong n_inner, const ulong span, const ulong x_offset, const ulong x_step, const ulong y_step,
    global const I *restrict indptr, global const I *restrict columns)
{
    values += values_offset;
    const uint lane = get_local_id(0) % ${lanes}, team = get_local_id(0) / ${lanes};
    const ulong begin = get_group_id(0) * span, end = min(n, begin + span);
    I row = row_of(indptr, 0, n_rows - 1, n_rows / 2 + 1, (I)begin);
    // All teams of lanes take equally many turns, as lanes exchange sums: teams beyond the last entry repeat this entry.
    for (ulong first = begin; first < end; first += ${work_group // lanes * entries}) {
        const ulong e = first + team * ${entries}ul;
% for u in range(entries):
        const ulong e_${u} = min(e + ${u}, end - 1);
% if u == 0:
        const I row_0 = row_of(indptr, row, n_rows - 1, 1, (I)e_0);
% else:
        const I row_${u} = (I)e_${u} < indptr[row_${u - 1} + 1] ? row_${u - 1} : row_of(indptr, row_${u - 1}, n_rows - 1, 1, (I)e_${u});
% endif
        global const A_VALUE *restrict x_${u} = x_base + x_offset + (ulong)row_${u} * x_step;
        global const X_VALUE *restrict y_${u} = y_base + y_offset + (ulong)columns[e_${u}] * y_step;
% if vectors:
        ${t_value}${items} sum_${u} = 0;
% else:
% for i in range(items):
        T sum_${u}_${i} = ZERO;
% endfor
% endif
% endfor
% if entries > 1:
        if (row_0 == row_${entries - 1}) {
${products(True)}\
        } else {
${products(False)}\
        }
% else:
${products(False)}\
% endif
        row = row_${entries - 1};
        local T *box = 0;
% for u in range(entries):
% for i in range(1, items):
        sum_${u}${first} = ADD(sum_${u}${first}, sum_${u}${f".s{i:x}" if vectors else f"_{i}"});
% endfor
        const T total_${u} = lanes_reduce(box, sum_${u}${first}, ${lanes});
        if (e + ${u} < end && lane == 0)
            values[e + ${u}] = total_${u};
% endfor
    }
}
