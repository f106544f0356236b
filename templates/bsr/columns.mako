<%doc>
Y = A @ X for a matrix of blocks of `rows` x `columns` and a dense X of any strides. A work-item sums a block row for `width`
adjacent columns of X, as vectors of the type `value`; if `chunked`, a work-item sums a chunk of block rows for all columns.

Source        own
Index space   `chunked`: n_parts work-items; else one for each block row and column, neighbours having neighbouring columns
Inputs        part_row, if `chunked`: n_parts + 1, of partition.mako; entry (i, j) of X stands x_offset + i * x_row + j *
              x_column values into its buffer, Y y_offset into its, x_column being 1 if `width` is more; blocks of a row in any
              order, duplicates allowed
Local memory  none
Result        deterministic: a row is summed in the order of its blocks; Y is C-contiguous
</%doc>
#include "unaligned.cl"
#include "vectors.cl"
% if width > 1:
UNALIGNED(${value}, ${width})
% endif
<%def name="sums(wide)">
% for r in range(rows):
            ${f"{value}{wide} sum_{r} = ({value}{wide})0" if wide > 1 else f"T sum_{r} = ZERO"};
% endfor
            for (ulong k = begin; k < end; ++k) {
                global const A_VALUE *restrict block = data + k * ${rows * columns};
                global const X_VALUE *restrict x = x_base + x_offset + (long)indices[k] * ${columns} * x_row + (long)j * x_column;
% for c in range(columns):
                const ${f"{value}{wide}" if wide > 1 else "T"} x_${c} = ${f"LOAD_UNALIGNED({value}, {wide}, x + {c} * x_row)" if wide > 1 else f"LOAD_X(x + {c} * x_row)"};
% endfor
% for r in range(rows):
% for c in range(columns):
% if wide > 1:
                sum_${r} += block[${r * columns + c}] * x_${c};
% else:
                sum_${r} = ADD(sum_${r}, MULTIPLY(from_a(block[${r * columns + c}]), x_${c}));
% endif
% endfor
% endfor
            }
            global T *restrict target = y_base + y_offset + row * ${rows} * n_columns + j;
% for r in range(rows):
% if wide > 1:
            vstore${wide}(sum_${r}, 0, target + ${r} * (ulong)n_columns);
% else:
            target[${r} * (ulong)n_columns] = sum_${r};
% endif
% endfor
</%def>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_parts, const uint n_columns, const long x_row, const long x_column, const ulong x_offset,
% if chunked:
    global const I *restrict part_row,
% endif
    global const I *restrict indptr, global const I *restrict indices, global const A_VALUE *restrict data,
    global const X_VALUE *restrict x_base, global T *restrict y_base, const ulong y_offset)
{
% if chunked:
    const ulong part = get_global_id(0);
    if (part >= n_parts)
        return;
    const ulong row_end = part_row[part + 1];
    for (ulong row = part_row[part]; row < row_end; ++row) {
        const ulong begin = indptr[row], end = indptr[row + 1];
        uint j = 0;
% if width > 1:
        for (; j + ${width} <= n_columns; j += ${width}) {
            ${sums(width)}
        }
% endif
        for (; j < n_columns; ++j) {
            ${sums(1)}
        }
    }
% else:
    const ulong row = get_global_id(0) / n_columns;
    const uint j = (uint)(get_global_id(0) - row * n_columns);
    if (row < n_parts) {
        const ulong begin = indptr[row], end = indptr[row + 1];
            ${sums(1)}
    }
% endif
}
