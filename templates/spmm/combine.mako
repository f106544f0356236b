<%doc>
Y[row] += alpha * (the partial sums of the row's later pieces), for rows that several parts share.

Index space   ceil(n_cut / rows of a work-group) * ceil(n_columns / `columns`) work-groups; columns * pieces work-items to a row
Inputs        the first piece of each row is in Y, scaled; the others are partial[first[i]] to partial[last[i]], n_columns values each
Local memory  work_group * sizeof(T) if a row has more than one work-item to a column, else none
Result        deterministic: pieces are always added in the same order
</%doc>
<%
    rows = work_group // (columns * pieces)
    halves = [1 << k for k in reversed(range(pieces.bit_length() - 1))]
%>
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    const long y_row, const long y_column, const uint n_columns,
    const I n_cut, global const I *restrict cut_row, global const I *restrict first, global const I *restrict last,
    global const T *restrict partial)
{
% if pieces > 1:
    local T sums[${work_group}];
% endif
    const uint me = get_local_id(0), n_blocks = (n_columns + ${columns - 1}) / ${columns};
    const ulong run = get_group_id(0) / n_blocks;
    const ulong i = run * ${rows} + me / ${columns * pieces};
    const uint column = (uint)(get_group_id(0) - run * n_blocks) * ${columns} + me % ${columns};
    const bool active = i < n_cut && column < n_columns;
    const uint piece = me / ${columns} % ${pieces};
    T sum = ZERO;
    if (active)
        for (I k = first[i] + piece; k <= last[i]; k += ${pieces})
            sum = ADD(sum, partial[(ulong)k * n_columns + column]);
% if pieces > 1:
    sums[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
% for half in halves:
    if (piece < ${half})
        sums[me] = ADD(sums[me], sums[me + ${half * columns}]);
    barrier(CLK_LOCAL_MEM_FENCE);
% endfor
    sum = sums[me];
% endif
    if (active && piece == 0)
        update_more(SCALE_ARGUMENTS y_base + y_offset + (long)cut_row[i] * y_row + (long)column * y_column, sum);
}
