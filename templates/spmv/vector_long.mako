<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], several work-groups to a very long row: each takes a piece of its entries. The first
piece of a row writes y, a later one partial[piece].

Source        the case that Hou, Feng and Che, Section III-B, leave to future work; after the long rows of CSR-Adaptive
Index space   a work-group a piece
Inputs        piece p is the entries piece_begin[p] to piece_end[p] of row piece_row[p]; columns in any order, duplicates allowed
Local memory  work_group * sizeof(T) where work_group exceeds the lane width, else none; work_group is a power of two
Result        deterministic: a piece is always summed in the same order
</%doc>
#define MAX_LANES ${work_group}
#include "lanes_t.cl"
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    global const I *restrict piece_row, global const I *restrict piece_begin, global const I *restrict piece_end,
    global T *restrict partial, global const I *restrict indptr, global const I *restrict indices)
{
% if needs_box:
    local T box[${work_group}];
% else:
    local T *box = 0;
% endif
    global const X_VALUE *restrict x = x_base + x_offset;
    const ulong piece = get_group_id(0);
    // Positions of A's entries are unsigned, as the last step of the loop may pass the largest number of the index type I.
    const ${position} end = piece_end[piece];
    ${position} k = piece_begin[piece] + get_local_id(0);
    T sum = ZERO;
    // A turn of this loop takes ${unroll} entries of a row's piece, so that the entries' loads are in flight together.
    for (; k + ${(unroll - 1) * work_group} < end; k += ${unroll * work_group}) {
% for u in range(unroll):
        const I column_${u} = LOAD_INDEX(indices + k + ${u * work_group});
% endfor
% for u in range(unroll):
        const T a_${u} = LOAD_A(data + k + ${u * work_group});
% endfor
% for u in range(unroll):
        sum = ADD(sum, MULTIPLY(a_${u}, LOAD_X(x + column_${u})));
% endfor
    }
    for (; k < end; k += ${work_group})
        sum = ADD(sum, MULTIPLY(LOAD_A(data + k), LOAD_X(x + LOAD_INDEX(indices + k))));
    sum = lanes_reduce(box, sum, ${work_group});
    if (get_local_id(0) == 0) {
        if (piece_begin[piece] == indptr[piece_row[piece]])
            update(SCALE_ARGUMENTS y_base + y_offset + piece_row[piece], sum);
        else
            partial[piece] = sum;
    }
}
