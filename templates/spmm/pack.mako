<%doc>
Copy the entries of X, a dense matrix of any strides, so that they are adjacent, row by row.

Source        a transposition by tiles in local memory
Index space   ceil(n_rows / `rows`) * ceil(n_columns / `columns`) work-groups
Inputs        x begins x_offset entries into its buffer, its entry (i, j) is i * x_row + j * x_column further
Local memory  rows * (columns + 1) values
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const X_VALUE *restrict x_base, const ulong x_offset, const long x_row, const long x_column,
    const ulong n_rows, const uint n_columns, global X_VALUE *restrict packed)
{
    local X_VALUE values[${rows * (columns + 1)}];
    const uint n_blocks = (n_columns + ${columns - 1}) / ${columns};
    const ulong run = get_group_id(0) / n_blocks;
    const ulong first = run * ${rows};
    const uint column = (uint)(get_group_id(0) - run * n_blocks) * ${columns};
    const uint n = (uint)min(n_rows - first, (ulong)${rows}), m = min(n_columns - column, ${columns}u);
    global const X_VALUE *restrict x = x_base + x_offset + (long)first * x_row + (long)column * x_column;
    packed += first * n_columns + column;
% for at in range(0, rows * columns, work_group):
    {
        const uint i = (get_local_id(0) + ${at}) % ${rows}, j = (get_local_id(0) + ${at}) / ${rows};
        if (i < n && j < m)
            values[i * ${columns + 1} + j] = x[(long)i * x_row + (long)j * x_column];
    }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for at in range(0, rows * columns, work_group):
    {
        const uint i = (get_local_id(0) + ${at}) / ${columns}, j = (get_local_id(0) + ${at}) % ${columns};
        if (i < n && j < m)
            packed[(ulong)i * n_columns + j] = values[i * ${columns + 1} + j];
    }
% endfor
}
