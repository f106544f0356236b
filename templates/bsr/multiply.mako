<%doc>
The values of C = A @ B for matrices of blocks of `rows` x `columns` and `columns` x `wide`, C's structure being known. Each
product of two blocks is added to the block of C in its column, which a bisection of the rest of C's row finds; rows of blocks
are computed as `vectors` of the type `value`.

Source        own
Index space   a work-item to chunks of block rows of C; or, if `lanes`, a work-group to each block row: teams of a work-item for
              each entry of a block take the blocks of a row of B, whose products stand in different blocks of C
Inputs        B's and C's block rows sorted, without duplicates; C's values zeros
Local memory  none
Result        deterministic: products are added in the order of A's and B's blocks
</%doc>
<%
    entries = rows * wide
    teams = work_group // entries

    def type_of(width):
        return f"{value}{width}" if width > 1 else "T"
%>\
#include "first_from.cl"
% if not lanes:
#include "unaligned.cl"
% for width in sorted({width for _, width in vectors if width > 1}):
UNALIGNED(${value}, ${width})
% endfor
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if not lanes:
    const I n_parts, global const I *restrict part_row,
% endif
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_data,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const X_VALUE *restrict b_data,
    global const I *restrict c_indptr, global const I *restrict c_indices, global T *restrict c_data)
{
% if lanes:
    const uint me = get_local_id(0), team = me / ${entries}, lane = me - team * ${entries}, r = lane / ${wide}, c = lane - r * ${wide};
    const ulong row = get_group_id(0);
% else:
    const ulong part = get_global_id(0);
    if (part >= n_parts)
        return;
    const ulong row_end = part_row[part + 1];
    for (ulong row = part_row[part]; row < row_end; ++row) {
% endif
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
        for (I q = b_indptr[of_a]${" + team" if lanes else ""}; q < b_end; ${f"q += {teams}" if lanes else "++q"}, ++place) {
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
% for n in range(columns):
% for begin, width in vectors:
            const ${type_of(width)} b_${n}_${begin} = ${f"LOAD_UNALIGNED({value}, {width}, b + {n * wide + begin})" if width > 1 else f"from_x(b[{n * wide + begin}])"};
% endfor
% endfor
% for r in range(rows):
% for begin, width in vectors:
            ${type_of(width)} sum_${r}_${begin} = ${f"LOAD_UNALIGNED({value}, {width}, target + {r * wide + begin})" if width > 1 else f"target[{r * wide + begin}]"};
% for n in range(columns):
% if width > 1:
            sum_${r}_${begin} += a_${r * columns + n} * b_${n}_${begin};
% else:
            sum_${r}_${begin} = ADD(sum_${r}_${begin}, MULTIPLY(a_${r * columns + n}, b_${n}_${begin}));
% endif
% endfor
% if width > 1:
            vstore${width}(sum_${r}_${begin}, 0, target + ${r * wide + begin});
% else:
            target[${r * wide + begin}] = sum_${r}_${begin};
% endif
% endfor
% endfor
% endif
        }
% if lanes:
        // The products of the next block of A are added to the sums in C that this block of A wrote.
        barrier(CLK_GLOBAL_MEM_FENCE);
% endif
    }
% if not lanes:
    }
% endif
}
