<%doc>
The entries of a dense matrix that are not 0: from a dense matrix to CSR.
Phase "mark" marks the places that hold an entry. Phase "place", after an exclusive scan of the marks, writes values and columns.

Index space   work-items that stride over the places, row by row, or take adjacent ones: `spread` says which
Inputs        dense: of any strides, counted in values, from the value at `origin` on
Output        "mark": marks[k]: 1 if place k holds an entry, else 0; "place": values and columns, in the order of places
Local memory  none
Result        exact; NaN is an entry
</%doc>
% if fp64:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    const ulong n_columns, const long origin, const long by_row, const long by_column, global const ${number} *restrict dense,
% if phase == "mark":
    global uchar *restrict marks)
% else:
    global const I *restrict places, global I *restrict columns, global ${number} *restrict values)
% endif
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong k = begin; k < end; k += step) {
        const ulong row = k / n_columns, column = k - row * n_columns;
        const ${number} v = dense[origin + (long)row * by_row + (long)column * by_column];
% if phase == "mark":
        marks[k] = ${"v.x != 0 || v.y != 0" if is_complex else "v != 0"};
% else:
        const I place = places[k];
        if (places[k + 1] != place) {
            columns[place] = (I)column;
            values[place] = v;
        }
% endif
    }
}
