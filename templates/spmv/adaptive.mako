<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], a work-group to a part of at most work_group * items entries: they are read as one
coalesced stream, their products staged in local memory, and rows summed from there; a short row by one work-item, a longer one
by X. What a part holds of a row that an earlier part began goes to partial[part].

Source        CSR-Adaptive: Greathouse and Daga, SC 2014 (CSR-Stream), and Daga and Greathouse, HiPC 2015 (its longer rows);
              the parts are made in parallel by boundaries.mako, and a long row is cut wherever a part ends
Index space   n_parts work-groups
Inputs        part_row, part_entry: n_parts + 1 each, of boundaries.mako, no part over work_group * items entries; columns in any
              order, duplicates allowed; rows may be empty
Local memory  work_group * items * sizeof(T) and a queue of longer rows; work_group * sizeof(T) where X exceeds the lane width
Result        deterministic: a row is summed in the order that the parts give
</%doc>
<% capacity = work_group * items %>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    global const I *restrict part_row, global const I *restrict part_entry, global T *restrict partial,
    global const I *restrict indptr, global const I *restrict indices)
{
    local T products[${capacity}];
    local I longer[${capacity // (short_row + 1) + 1}];
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
    const I row_begin = part_row[part], row_end = part_row[part + 1];
    const I begin = part_entry[part], end = part_entry[part + 1];
    const uint count = (uint)(end - begin);

    // All of the part's loads are in flight before the first is used.
    if (count == ${capacity}) {
${stage("")}
    } else {
${stage("if (me + {} < count)")}
    }
    if (me == 0)
        n_longer = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    // A part that begins inside a row has that row's rest, which is not its own to write.
    const I first = row_begin - (begin < indptr[row_begin] ? 1 : 0);
    for (I row = first + me; row < row_end; row += ${work_group}) {
        const uint from = (uint)(max(indptr[row], begin) - begin), to = (uint)(min(indptr[row + 1], end) - begin);
        if (to - from > ${short_row}) {
            longer[atomic_inc(&n_longer)] = row;
            continue;
        }
        T sum = ZERO;
        for (uint k = from; k < to; ++k)
            sum = ADD(sum, products[k]);
        if (row < row_begin)
            partial[part] = sum;
        else
            update(SCALE_ARGUMENTS y + row, sum);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // The same number of rounds for every lane, as the exchange may have barriers.
    const uint n = n_longer;
    for (uint i = 0; i < n; i += ${work_group // lanes}) {
        const uint mine = i + me / ${lanes};
        const bool active = mine < n;
        const I row = active ? longer[mine] : 0;
        uint k = active ? (uint)(max(indptr[row], begin) - begin) + me % ${lanes} : 0;
        const uint to = active ? (uint)(min(indptr[row + 1], end) - begin) : 0;
        T sum = ZERO;
        for (; k < to; k += ${lanes})
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
<%def name="stage(guard)">
% for u in range(items):
        I column_${u} = 0;
        T a_${u} = ZERO;
        ${guard.format(u * work_group)} {
            column_${u} = LOAD_INDEX(indices + begin + (me + ${u * work_group}));
            a_${u} = LOAD_A(data + begin + (me + ${u * work_group}));
        }
% endfor
% for u in range(items):
        ${guard.format(u * work_group)}
            products[me + ${u * work_group}] = MULTIPLY(a_${u}, LOAD_X(x + column_${u}));
% endfor
</%def>
