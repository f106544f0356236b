<%doc>
As rows.mako, one work-item to a long chunk of adjacent entries of the result: for devices whose work-items are the iterations
of a core's loop.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   n_parts work-items
Inputs        those of rows.mako; part_row, part_entry: n_parts + 1 each, of partition.mako on starts
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_parts, global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict starts,
% if listed_type:
    const I n_positions, global const ${listed_type} *restrict rows,
% endif
    global const I *restrict indptr, global const I *restrict indices,
    global const V *restrict values, global I *restrict out_indices, global V *restrict out_values)
{
    const ulong part = get_global_id(0);
    if (part >= n_parts)
        return;
    const I row_begin = part_row[part], row_end = part_row[part + 1], end = part_entry[part + 1];
    I entry = part_entry[part];
    // The first row of a part of the result may begin before the part.
    for (I row = row_begin - (entry < starts[row_begin] ? 1 : 0); row < row_end; ++row) {
        const I piece_end = min(starts[row + 1], end), position = ${"rows[row]" if listed_type else "row"};
        const I distance = indptr[position${" < 0 ? position + n_positions : position" if listed_type else ""}] - starts[row];
        for (; entry < piece_end; ++entry) {
            out_indices[entry] = indices[entry + distance];
            out_values[entry] = values[entry + distance];
        }
    }
}
