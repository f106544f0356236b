<%doc>
y = A @ x for a matrix of blocks of `rows` x `columns`: a team of `rows` * `columns` * `slices` work-items to a block row, several
`teams` to a work-group. A work-item sums one entry of every `slices`-th block, so that neighbours read neighbouring values.

Source        own
Index space   ceil(n_rows / `teams`) work-groups
Inputs        x and y begin x_offset and y_offset values into their buffers; blocks of a row in any order, duplicates allowed;
              block rows may be empty
Local memory  a sum of each work-item
Result        deterministic: the sums of an entry's row are added up by slices and columns
</%doc>
<%
    size = rows * columns
%>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, global const I *restrict indptr, global const I *restrict indices, global const A_VALUE *restrict data,
    global const X_VALUE *restrict x_base, const ulong x_offset, global T *restrict y_base, const ulong y_offset)
{
    local T sums[${work_group}];
    const uint me = get_local_id(0), team = me / ${size * slices}, lane = me - team * ${size * slices};
    const uint slice = lane / ${size}, entry = lane - slice * ${size}, c = entry % ${columns};
    const ulong row = get_group_id(0) * ${teams} + team;
    T sum = ZERO;
    if (row < n_rows) {
        const ulong end = indptr[row + 1];
        global const X_VALUE *restrict x = x_base + x_offset + c;
        for (ulong k = indptr[row] + slice; k < end; k += ${slices})
            sum = ADD(sum, MULTIPLY(LOAD_A(data + k * ${size} + entry), LOAD_X(x + (ulong)indices[k] * ${columns})));
    }
    sums[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row < n_rows && lane < ${rows}) {
        local const T *of_row = sums + team * ${size * slices} + lane * ${columns};
        sum = of_row[0];
% for at in range(1, slices * columns):
        sum = ADD(sum, of_row[${at // columns * size + at % columns}]);
% endfor
        y_base[y_offset + row * ${rows} + lane] = sum;
    }
}
