<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], with X consecutive work-items to a row: Kernel-Serial (X = 1), Kernel-SubvectorX and
Kernel-Vector (X = work_group). Bins that take different X, at most `lanes`, share one launch.

Source        after Hou, Feng and Che, Algorithms 3 to 5; products are summed in registers, not staged in local memory
Index space   without bins: ceil(n_rows * X / work_group) work-groups. With bins: work-groups one bin after the other, five
              numbers to a bin: its first work-group, where its list begins in rows, how many virtual rows are on the list, how
              many adjacent rows make a virtual one, X. A work-group belongs to one bin.
Inputs        columns in any order, duplicates allowed; rows may be empty
Local memory  work_group * sizeof(T) where an X exceeds the lane width, else none
Result        deterministic: a row is always summed in the same order
</%doc>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
% if binned:
    const I n_rows, const I n_bins, global const I *restrict bins, global const I *restrict rows,
% else:
    const I n_rows,
% endif
    global const I *restrict indptr, global const I *restrict indices)
{
% if needs_box:
    local T box[${work_group}];
% else:
    local T *box = 0;
% endif
    global const X_VALUE *restrict x = x_base + x_offset;
    global T *restrict y = y_base + y_offset;

% if binned:
    global const I *restrict bin = bins;
    for (I b = 1; b < n_bins; ++b)
        if (get_group_id(0) >= bins[5 * b])
            bin = bins + 5 * b;
    const I granularity = bin[3];
    const uint lanes = bin[4];
    const ulong slot = ((ulong)(get_group_id(0) - bin[0]) * ${work_group} + get_local_id(0)) / lanes;
    const bool inside = slot < (ulong)bin[2] * granularity;
    const ulong row = inside ? (ulong)rows[bin[1] + slot / granularity] * granularity + slot % granularity : 0;
    const bool active = inside && row < n_rows;
% else:
    const uint lanes = ${lanes};
    const ulong slot = get_global_id(0) / lanes;
    const bool active = slot < n_rows;
    const ulong row = active ? slot : 0;
% endif
    // No work-item returns early: every lane (work-item of a row) takes part in lanes_reduce.
    const uint lane = get_local_id(0) % lanes;
    // Positions of A's entries are unsigned, as the last step of the loop may pass the largest number of the index type I.
    const ${position} end = active ? indptr[row + 1] : 0;
    ${position} k = active ? indptr[row] + lane : 0;
    T sum = ZERO;
% if unroll > 1:
    // A turn of this loop takes ${unroll} entries of a row, so that the entries' loads are in flight together.
    for (; k + ${unroll - 1} * lanes < end; k += ${unroll} * lanes) {
% for u in range(unroll):
        const I column_${u} = LOAD_INDEX(indices + k + ${u} * lanes);
% endfor
% for u in range(unroll):
        const T a_${u} = LOAD_A(data + k + ${u} * lanes);
% endfor
% for u in range(unroll):
        sum = ADD(sum, MULTIPLY(a_${u}, LOAD_X(x + column_${u})));
% endfor
    }
% endif
    for (; k < end; k += lanes)
        sum = ADD(sum, MULTIPLY(LOAD_A(data + k), LOAD_X(x + LOAD_INDEX(indices + k))));
    sum = lanes_reduce(box, sum, lanes);
    if (active && lane == 0)
        update(SCALE_ARGUMENTS y + row, sum);
}
