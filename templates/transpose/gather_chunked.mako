<%doc>
As gather.mako, one work-item to a long chunk of adjacent entries: for devices whose work-items are the iterations of a core's
loop.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   n_parts work-items; nothing is done where report[0] is 0
Inputs        a square matrix; part_row, part_entry: n_parts + 1 each, of partition.mako
Output        report[1]: as of gather.mako
Local memory  none
Result        exact
</%doc>
#include "mirror.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_parts, global const I *restrict part_row, global const I *restrict part_entry,
    global const I *restrict indptr, global const I *restrict indices,
% if not positions:
    global const V *restrict data,
% endif
    global uint *restrict report, global V *restrict out)
{
    const ulong part = get_global_id(0);
    if (part >= n_parts || !report[0])
        return;
    const I row_begin = part_row[part], row_end = part_row[part + 1], end = part_entry[part + 1];
    I k = part_entry[part];
    uint faults = 0;
    // The first row of a part of the matrix may begin before the part.
    for (I row = row_begin - (k < indptr[row_begin] ? 1 : 0); row < row_end; ++row) {
        const I of_row = indptr[row], next = indptr[row + 1], row_ends = next < end ? next : end;
        for (; k < row_ends; ++k) {
            const I column = indices[k], low = indptr[column], high = indptr[column + 1];
            const I place = mirror_search(indices, low, high, mirror_guess(low, high, k - of_row), row);
            faults |= (place < 0) | (k > of_row && indices[k - 1] >= column) << 1;
            out[k] = ${"place" if positions else "data[place < 0 ? 0 : place]"};
        }
    }
    if (faults)
        atomic_or(report + 1, faults);
}
