<%doc>
y[row] += alpha * (the partial sums of all pieces of the row but the first), for rows that several parts of A share; y has
n_columns columns.

Index space   ceil(n_columns / columns) times as many work-groups as the rows of many pieces take, `lanes` work-items to a row and
              column, and the other rows, with one work-item to a row and column
Inputs        the first piece of each row is in y, scaled; the others are partial[first[i]] to partial[last[i]], of n_columns
              values each; the n_long rows of many pieces come first
Local memory  work_group * sizeof(T)
Result        deterministic: pieces are always added in the same order
</%doc>
<%
    halves = [1 << k for k in reversed(range(lanes.bit_length() - 1))]
    rows = work_group // columns
    long_rows = rows // lanes
%>
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    const long y_row, const long y_column, const uint n_columns, const I n_long,
    const I n_cut, global const I *restrict cut_row, global const I *restrict first, global const I *restrict last,
    global const T *restrict partial)
{
    local T sums[${work_group}];
    const uint me = get_local_id(0), n_blocks = (n_columns + ${columns - 1}) / ${columns};
    const uint group = get_group_id(0), run = group / n_blocks;
    const uint column = (group - run * n_blocks) * ${columns} + me % ${columns};
    const uint row = me / ${columns}, lane = row % ${lanes};
    const uint n_long_runs = ((ulong)n_long + ${long_rows - 1}) / ${long_rows};
    const bool is_long = run < n_long_runs;
    const ulong i = is_long ? (ulong)run * ${long_rows} + row / ${lanes} : n_long + (ulong)(run - n_long_runs) * ${rows} + row;
    const bool active = i < (ulong)(is_long ? n_long : n_cut) && column < n_columns;
    T sum = ZERO;
    // The stride of the loop over a row's pieces is a constant, so that several loads are in flight.
    if (active && is_long)
        for (long k = (long)first[i] + lane; k <= last[i]; k += ${lanes})
            sum = ADD(sum, partial[k * n_columns + column]);
    else if (active)
        for (long k = first[i]; k <= last[i]; ++k)
            sum = ADD(sum, partial[k * n_columns + column]);
    // Lanes (work-items) of a cut row of many pieces add their sums; other work-items take part in the barriers alone.
    sums[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
% for half in halves:
    if (is_long && lane < ${half})
        sums[me] = ADD(sums[me], sums[me + ${half * columns}]);
    barrier(CLK_LOCAL_MEM_FENCE);
% endfor
    if (active && (lane == 0 || !is_long))
        update_more(SCALE_ARGUMENTS y_base + y_offset + (long)cut_row[i] * y_row + (long)column * y_column, sums[me]);
}
