<%doc>
y = A @ x for a matrix of blocks of `rows` x `columns`, a work-item to a chunk of adjacent block rows: the kernel for devices
whose work-items are the iterations of a core's loop. The entries of a block are multiplied as `vectors` of the type `value`, in
the order in which they are stored, by values of x in that order; at the end of a block row the sums of columns are added up.

Source        own; register blocks as in Im and Yelick's SPARSITY
Index space   n_parts work-items
Inputs        part_row: n_parts + 1, of partition.mako; x and y begin x_offset and y_offset values into their buffers; blocks of
              a row in any order, duplicates allowed; block rows may be empty
Local memory  none
Result        deterministic: a row is summed in the order of its blocks
</%doc>
<%
    def x_of(begin, width):
        return ", ".join(f"x_{(begin + i) % columns}" for i in range(width))

    def at(entry):
        """The sum of the products of an entry's place in all blocks."""
        begin, width = next(vector for vector in vectors if vector[0] <= entry < sum(vector))
        return f"sum_{begin}" if width == 1 else f"sum_{begin}.s{entry - begin:x}"
%>\
#include "unaligned.cl"
% if ahead:
#include "prefetch.cl"
% endif
% for width in sorted({width for _, width in vectors if width > 1}):
UNALIGNED(${value}, ${width})
% endfor

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_parts, global const I *restrict part_row, global const I *restrict indptr, global const I *restrict indices,
    global const A_VALUE *restrict data, global const X_VALUE *restrict x_base, const ulong x_offset,
    global T *restrict y_base, const ulong y_offset)
{
    const ulong part = get_global_id(0);
    if (part >= n_parts)
        return;
    global const X_VALUE *restrict x = x_base + x_offset;
    global T *restrict y = y_base + y_offset;
    const ulong row_end = part_row[part + 1];
    ulong row = part_row[part], k = indptr[row];
    for (; row < row_end; ++row) {
        const ulong end = indptr[row + 1];
% for begin, width in vectors:
        ${value if width > 1 else "T"}${width if width > 1 else ""} sum_${begin} = ${f"({value}{width})0" if width > 1 else "ZERO"};
% endfor
        for (; k < end; ++k) {
            global const A_VALUE *restrict block = data + k * ${rows * columns};
% if ahead:
            PREFETCH_LINE(block + ${ahead})
            PREFETCH_LINE(indices + k + ${ahead // (rows * columns)})
% endif
            global const X_VALUE *restrict of_block = x + (ulong)indices[k] * ${columns};
% for c in range(columns):
            const T x_${c} = LOAD_X(of_block + ${c});
% endfor
% for begin, width in vectors:
% if width > 1:
            sum_${begin} += LOAD_UNALIGNED(${value}, ${width}, block + ${begin}) * (${value}${width})(${x_of(begin, width)});
% else:
            sum_${begin} = ADD(sum_${begin}, MULTIPLY(from_a(block[${begin}]), x_${begin % columns}));
% endif
% endfor
        }
% for r in range(rows):
        T row_${r} = ${at(r * columns)};
% for c in range(1, columns):
        row_${r} = ADD(row_${r}, ${at(r * columns + c)});
% endfor
        y[row * ${rows} + ${r}] = row_${r};
% endfor
    }
}
