<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], by row patterns: no columns are read, and of indptr an entry a work-group. A
work-group has as many rows as X consecutive work-items to a row allow. Its values are read as one coalesced stream and staged in
local memory; rows begin where a scan of the lengths of their patterns says.

Source        delta patterns of CSX: Kourtis, Karakasis, Goumas and Koziris, PPoPP 2011; values staged as in streamed.mako
Index space   ceil(n_rows * X / work_group) work-groups
Inputs        numbers, lengths, offsets: of find_patterns.mako; rows have at most `width` entries, which is at most X * items
Local memory  work_group * (items * sizeof(A_VALUE) + sizeof(uint)); (work_group / X) * (sizeof(uint) + 1) + sizeof(uint) where
              X > 1; work_group * sizeof(T) where X exceeds the lane width
Result        deterministic: a row is summed in the order of streamed.mako and subvector.mako with as many lanes
</%doc>
#define WORK_GROUP ${work_group}
#define MAX_LANES ${lanes}
#include "group_scan.cl"
#include "lanes_t.cl"
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    const I n_rows, const uint width, global const I *restrict indptr,
    global const uchar *restrict numbers, global const uchar *restrict lengths, global const I *restrict offsets)
{
    local A_VALUE values[${work_group * items}];
    local uint scanned[${work_group}];
% if lanes > 1:
    local uint starts[${rows + 1}];
    local uchar patterns[${rows}];
% endif
% if needs_box:
    local T box[${work_group}];
% else:
    local T *box = 0;
% endif
    const uint me = get_local_id(0);
    const ulong first = (ulong)get_group_id(0) * ${rows}, behind = min(first + ${rows}, (ulong)n_rows);
    const I begin = indptr[first];
    const uint count = (uint)(indptr[behind] - begin);
    global const X_VALUE *restrict x = x_base + x_offset;
    global T *restrict y = y_base + y_offset;

    // All loads of the rows' values are in flight before the first value is used.
    const bool is_counted = ${f"me < {rows} && " if lanes > 1 else ""}first + me < behind;
    const uint counted = is_counted ? numbers[first + me] : 0;
% for u in range(items):
    A_VALUE a_${u};
    if (me + ${u * work_group} < count)
        a_${u} = LOAD_VALUE(data + begin + (me + ${u * work_group}));
% endfor
    const uint counted_length = is_counted ? lengths[counted] : 0;
% for u in range(items):
    if (me + ${u * work_group} < count)
        values[me + ${u * work_group}] = a_${u};
% endfor
    const uint counted_start = group_scan_add(scanned, counted_length);
% if lanes > 1:
    if (me < ${rows}) {
        patterns[me] = (uchar)counted;
        starts[me] = counted_start;
        if (me == ${rows - 1})
            starts[${rows}] = counted_start + counted_length;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint mine = me / ${lanes}, lane = me % ${lanes};
    const uint number = patterns[mine], start = starts[mine], length = starts[mine + 1] - start;
% else:
    const uint mine = me, lane = 0, number = counted, start = counted_start, length = counted_length;
% endif
    const ulong row = first + mine;
    global const I *restrict own = offsets + number * width;
    T sum = ZERO;
% for u in range(items):
    T x_${u} = ZERO;
    if (lane + ${u * lanes} < length)
        x_${u} = LOAD_X(x + (I)((I)row + own[lane + ${u * lanes}]));
% endfor
% for u in range(items):
    if (lane + ${u * lanes} < length)
        sum = ADD(sum, MULTIPLY(from_a(values[start + lane + ${u * lanes}]), x_${u}));
% endfor
    sum = lanes_reduce(box, sum, ${lanes});
    if (row < behind${" && lane == 0" if lanes > 1 else ""})
        update(SCALE_ARGUMENTS y + row, sum);
}
