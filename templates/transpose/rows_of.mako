<%doc>
rows[k]: the row of entry k.

Source        parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   n_parts work-groups
Inputs        part_row, part_entry: n_parts + 1 each, of boundaries.mako with a row weighing 1, no part over ${work_group * items}
Local memory  ${work_group * items + 1} numbers
Result        exact
</%doc>
#include "tile_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict indptr, global I *restrict rows)
{
    local uint starts[${work_group * items + 1}];
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
    const I begin = part_entry[part], first = tile_first_row(part_row[part], begin, indptr);
    const uint count = (uint)(part_entry[part + 1] - begin), n_rows = count ? (uint)(part_row[part + 1] - first) : 0;
    tile_stage_rows(starts, n_rows, first, begin, indptr);
% for u in range(items):
    if (me + ${u * work_group} < count)
        rows[begin + (me + ${u * work_group})] = first + tile_row(starts, n_rows, me + ${u * work_group});
% endfor
}
