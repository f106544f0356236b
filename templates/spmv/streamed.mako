<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], a work-group to a part: its entries are read as one coalesced stream and staged in
local memory, columns and values, and X consecutive work-items sum a row from there. So neighbouring rows ask for x together, at
places side by side if rows are alike. Columns may come as 16 bits, as differences to the part's lowest.

Source        CSR-Stream (Greathouse and Daga, SC 2014) with entries staged in place of products
Index space   n_parts work-groups
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako: at most work_group * items entries to a part, no row cut;
              columns in any order, duplicates allowed; rows may be empty; narrow: columns and lowest, of narrow.mako
Local memory  work_group * items * (sizeof(A_VALUE) + sizeof(I), or 2 for narrow columns); work_group * sizeof(T) where X
              exceeds the lane width
Result        deterministic: a row is always summed in the same order, whether columns are narrow or not
</%doc>
<%
    capacity = work_group * items
    ahead = 4  # entries of a row that a work-item asks x for together
%>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict indptr,
% if narrow:
    global const ushort *restrict columns, global const I *restrict lowest)
% else:
    global const I *restrict columns)
% endif
{
    local A_VALUE values[${capacity}];
    local ${"ushort" if narrow else "I"} places[${capacity}];
% if needs_box:
    local T box[${work_group}];
% else:
    local T *box = 0;
% endif
    const uint me = get_local_id(0), lane = me % ${lanes};
    const ulong part = get_group_id(0);
    const I begin = part_entry[part];
    const uint count = (uint)(part_entry[part + 1] - begin);
    const ${position} row_end = part_row[part + 1];
    ${position} row = part_row[part] + me / ${lanes};
    const uint n_rounds = (uint)((row_end - part_row[part] + ${rows - 1}) / ${rows});
    global const X_VALUE *restrict x = x_base + x_offset${" + lowest[part]" if narrow else ""};
    global T *restrict y = y_base + y_offset;

    // All loads of the part's entries are in flight before the first entry is used.
    if (count == ${capacity}) {
${stage("")}
    } else {
${stage("if (me + {} < count)")}
    }
    uint from = 0, to = 0;
    if (row < row_end) {
        from = (uint)(indptr[row] - begin);
        to = (uint)(indptr[row + 1] - begin);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // Every lane (work-item of a row) takes the same number of turns of this loop, as lanes_reduce may have barriers.
    for (uint i = 0; i < n_rounds; ++i) {
        T sum = ZERO;
        for (uint k = from + lane; k < to; k += ${ahead * lanes}) {
% for u in range(ahead):
            T x_${u} = ZERO;
            if (k + ${u * lanes} < to)
                x_${u} = LOAD_X(x + places[k + ${u * lanes}]);
% endfor
% for u in range(ahead):
            if (k + ${u * lanes} < to)
                sum = ADD(sum, MULTIPLY(from_a(values[k + ${u * lanes}]), x_${u}));
% endfor
        }
        sum = lanes_reduce(box, sum, ${lanes});
        if (row < row_end && lane == 0)
            update(SCALE_ARGUMENTS y + row, sum);
        row += ${rows};
        from = to = 0;
        if (row < row_end) {
            from = (uint)(indptr[row] - begin);
            to = (uint)(indptr[row + 1] - begin);
        }
    }
}
<%def name="stage(guard)">
% for u in range(items):
        ${"ushort" if narrow else "I"} place_${u} = 0;
        A_VALUE a_${u};
        ${guard.format(u * work_group)} {
            place_${u} = ${"columns[begin + (me + %d)]" % (u * work_group) if narrow else "LOAD_INDEX(columns + begin + (me + %d))" % (u * work_group)};
            a_${u} = LOAD_VALUE(data + begin + (me + ${u * work_group}));
        }
% endfor
% for u in range(items):
        ${guard.format(u * work_group)} {
            places[me + ${u * work_group}] = place_${u};
            values[me + ${u * work_group}] = a_${u};
        }
% endfor
</%def>
