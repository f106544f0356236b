<%doc>
values[e] = X[row] . Y[column] for each entry e of a pattern: a product of dense matrices, at the places of a sparse one. `lanes`
consecutive work-items take an entry, and each `items` adjacent values of both rows at a time.

Source        own; sampled dense-dense matrix multiplication
Index space   teams of lanes that stride over the entries
Inputs        rows and columns of the entries; X and Y with n_inner adjacent values to a row, x_step and y_step values apart
Local memory  none; lanes of an entry exchange within a sub-group
Result        deterministic: products are always added in the same order
</%doc>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_inner,
    global const A_VALUE *restrict x_base, const ulong x_offset, const ulong x_step,
    global const X_VALUE *restrict y_base, const ulong y_offset, const ulong y_step,
    global const I *restrict rows, global const I *restrict columns, global T *restrict values)
{
    const uint lane = get_local_id(0) % ${lanes};
    const ulong teams = get_global_size(0) / ${lanes};
    // All teams of a work-group take as many turns, as their lanes exchange.
    const ulong turns = (n + teams - 1) / teams;
    for (ulong turn = 0; turn < turns; ++turn) {
        const ulong e = turn * teams + get_global_id(0) / ${lanes};
        const bool active = e < n;
        global const A_VALUE *restrict x = x_base + x_offset + (active ? (ulong)rows[e] * x_step : 0);
        global const X_VALUE *restrict y = y_base + y_offset + (active ? (ulong)columns[e] * y_step : 0);
% for u in range(items):
        T sum_${u} = ZERO;
% endfor
        ulong k = active ? lane * ${items}ul : n_inner;
        for (; k + ${items - 1} < n_inner; k += ${lanes * items}) {
% for u in range(items):
            sum_${u} = ADD(sum_${u}, MULTIPLY(from_a(x[k + ${u}]), from_x(y[k + ${u}])));
% endfor
        }
        for (; k < n_inner && k % ${lanes * items} / ${items} == lane; ++k)
            sum_0 = ADD(sum_0, MULTIPLY(from_a(x[k]), from_x(y[k])));
% for u in range(1, items):
        sum_0 = ADD(sum_0, sum_${u});
% endfor
        local T *box = 0;
        const T sum = lanes_reduce(box, sum_0, ${lanes});
        if (active && lane == 0)
            values[e] = sum;
    }
}
