<%doc>
Y[row] += alpha * (the partial sums of the row's later pieces), for rows that several parts share.

Index space   n_long * n_blocks work-groups, one to a row of many pieces and to `columns` columns, then as many as the other rows
              take, with one work-item to a row and column; n_blocks is ceil(n_columns / columns)
Inputs        the first piece of each row is in Y, scaled; the others are partial[first[i]] to partial[last[i]], of n_columns
              values each; rows of many pieces come first
Local memory  work_group * sizeof(T)
Result        deterministic: pieces are always added in the same order
</%doc>
<%
    lanes = work_group // columns
    halves = [1 << k for k in reversed(range(lanes.bit_length() - 1))]
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
    const uint me = get_local_id(0), lane = me / ${columns}, n_blocks = (n_columns + ${columns - 1}) / ${columns};
    const ulong run = get_group_id(0) / n_blocks;
    const uint column = (uint)(get_group_id(0) - run * n_blocks) * ${columns} + me % ${columns};
    const bool is_long = run < (ulong)n_long;
    const ulong i = is_long ? run : n_long + (run - n_long) * ${lanes} + lane;
    const bool active = i < (ulong)n_cut && column < n_columns;
    T sum = ZERO;
    if (active)
        // Unsigned: the last step may pass the largest I.
        for (ulong k = first[i] + (is_long ? lane : 0); k <= (ulong)last[i]; k += is_long ? ${lanes} : 1)
            sum = ADD(sum, partial[k * n_columns + column]);
    // The lanes of a row of many pieces; those of others take part in the barriers alone.
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
