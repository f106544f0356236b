<%doc>
y = A @ x for a matrix of blocks of `rows` x `columns`: a team of `rows` * `slices` work-items to a block row, several `teams`
to a work-group. A work-item sums a row of every `slices`-th block, so that neighbours read neighbouring rows of a block.

Source        own; a work-item to a row of a block row as in Eberhardt and Hoemmen, IA3 2016
Index space   ceil(n_rows / `teams`) work-groups
Inputs        x and y begin x_offset and y_offset values into their buffers; blocks of a row in any order, duplicates allowed;
              block rows may be empty
Local memory  a sum of each work-item, if there are several slices
Result        deterministic: the sums of slices are added up as a tree
</%doc>
<%
    halves = []
    while slices > 1 << len(halves):
        halves.insert(0, 1 << len(halves))
%>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, global const I *restrict indptr, global const I *restrict indices, global const A_VALUE *restrict data,
    global const X_VALUE *restrict x_base, const ulong x_offset, global T *restrict y_base, const ulong y_offset)
{
% if slices > 1:
    local T sums[${work_group}];
% endif
    const uint me = get_local_id(0), team = me / ${rows * slices}, lane = me - team * ${rows * slices};
    const uint slice = lane / ${rows}, r = lane - slice * ${rows};
    const ulong row = get_group_id(0) * ${teams} + team;
    T sum = ZERO;
    if (row < n_rows) {
        const ulong end = indptr[row + 1];
        for (ulong k = indptr[row] + slice; k < end; k += ${slices}) {
            global const A_VALUE *restrict of_row = data + (k * ${rows} + r) * ${columns};
            global const X_VALUE *restrict x = x_base + x_offset + (ulong)indices[k] * ${columns};
% for c in range(columns):
            sum = ADD(sum, MULTIPLY(LOAD_A(of_row + ${c}), LOAD_X(x + ${c})));
% endfor
        }
    }
% if slices > 1:
    sums[me] = sum;
% endif
% for half in halves:
    barrier(CLK_LOCAL_MEM_FENCE);
    if (slice < ${half})
        sums[me] = ADD(sums[me], sums[me + ${half * rows}]);
% endfor
    if (row < n_rows && slice == 0)
        y_base[y_offset + row * ${rows} + r] = ${"sums[me]" if slices > 1 else "sum"};
}
