<%doc>
The entries of X, a dense matrix of any strides, row by row and adjacent.

Source        a transposition by tiles in local memory
Index space   ceil(n_rows / `tile`) * ceil(n_columns / `tile`) work-groups
Inputs        x begins x_offset entries into its buffer, its entry (i, j) is i * x_row + j * x_column further
Local memory  tile * (tile + 1) values
Result        exact
</%doc>
<% steps = work_group // tile %>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const X_VALUE *restrict x_base, const ulong x_offset, const long x_row, const long x_column,
    const ulong n_rows, const uint n_columns, global X_VALUE *restrict packed)
{
    local X_VALUE values[${tile * (tile + 1)}];
    global const X_VALUE *restrict x = x_base + x_offset;
    const uint n_blocks = (n_columns + ${tile - 1}) / ${tile};
    const ulong run = get_group_id(0) / n_blocks;
    const ulong row = run * ${tile};
    const uint column = (uint)(get_group_id(0) - run * n_blocks) * ${tile};
    const uint lane = get_local_id(0) % ${tile}, step = get_local_id(0) / ${tile};
% for c in range(0, tile, steps):
    if (row + lane < n_rows && column + step + ${c} < n_columns)
        values[lane * ${tile + 1} + step + ${c}] = x[(long)(row + lane) * x_row + (long)(column + step + ${c}) * x_column];
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for r in range(0, tile, steps):
    if (row + step + ${r} < n_rows && column + lane < n_columns)
        packed[(row + step + ${r}) * n_columns + column + lane] = values[(step + ${r}) * ${tile + 1} + lane];
% endfor
}
