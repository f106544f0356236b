<%doc>
The values of C = A @ B for matrices of blocks of `rows` x `columns` and `columns` x `wide`, C's structure being known. Each
product of two blocks is added to C's block of its column, which is found by bisection among those behind the last one.

Source        own
Index space   a work-item to a block row of C, or, if `lanes`, one for each entry of a block: entries of a block row are made by
              the same one
Inputs        B's and C's block rows sorted, without duplicates; C's values zeros
Local memory  none
Result        deterministic: products are added in the order of A's and B's blocks
</%doc>
<%
    entries = rows * wide
    teams = work_group // entries if lanes else work_group
%>\
#include "first_from.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_data,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const X_VALUE *restrict b_data,
    global const I *restrict c_indptr, global const I *restrict c_indices, global T *restrict c_data)
{
% if lanes:
    const uint me = get_local_id(0), team = me / ${entries}, lane = me - team * ${entries}, r = lane / ${wide}, c = lane - r * ${wide};
    const ulong row = get_group_id(0) * ${teams} + team;
% else:
    const ulong row = get_global_id(0);
% endif
    if (row >= n_rows)
        return;
    const I begin = c_indptr[row], end = c_indptr[row + 1], a_end = a_indptr[row + 1];
    for (I k = a_indptr[row]; k < a_end; ++k) {
        const I of_a = a_indices[k], b_end = b_indptr[of_a + 1];
        global const A_VALUE *restrict a = a_data + (ulong)k * ${rows * columns};
% if lanes:
% for n in range(columns):
        const T a_${n} = from_a(a[r * ${columns} + ${n}]);
% endfor
% else:
% for i in range(rows * columns):
        const T a_${i} = from_a(a[${i}]);
% endfor
% endif
        I place = begin;
        for (I q = b_indptr[of_a]; q < b_end; ++q, ++place) {
            const I column = b_indices[q];
            if (c_indices[place] != column)
                place = first_from(c_indices, place + 1, end, column);
            global const X_VALUE *restrict b = b_data + (ulong)q * ${columns * wide};
            global T *restrict target = c_data + (ulong)place * ${entries};
% if lanes:
            T sum = target[lane];
% for n in range(columns):
            sum = ADD(sum, MULTIPLY(a_${n}, from_x(b[${n * wide} + c])));
% endfor
            target[lane] = sum;
% else:
% for i in range(columns * wide):
            const T b_${i} = from_x(b[${i}]);
% endfor
% for i in range(entries):
            T sum_${i} = target[${i}];
% endfor
% for n in range(columns):
% for r in range(rows):
% for c in range(wide):
            sum_${r * wide + c} = ADD(sum_${r * wide + c}, MULTIPLY(a_${r * columns + n}, b_${n * wide + c}));
% endfor
% endfor
% endfor
% for i in range(entries):
            target[${i}] = sum_${i};
% endfor
% endif
        }
    }
}
