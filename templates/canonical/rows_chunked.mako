<%doc>
The row of each entry of a CSR matrix, as rows.mako; a work-item takes a long chunk of rows and entries: for devices whose
work-items are the iterations of a core's loop.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   n_parts work-items
Inputs        a valid structure; part_row, part_entry: n_parts + 1 each, of partition.mako
Output        rows: of each entry; if `value_bytes`, copies of columns and values
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_parts, global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict indptr,
    global I *restrict rows${", " if value_bytes else ")"}
% if value_bytes:
    global const I *restrict indices, global const V *restrict values, global I *restrict columns, global V *restrict copied)
% endif
{
    const ulong part = get_global_id(0);
    if (part >= n_parts)
        return;
    const I row_end = part_row[part + 1], end = part_entry[part + 1];
    I entry = part_entry[part];
    // The work-item's part of the rows and entries may begin inside a row.
    for (I row = part_row[part] - (entry < indptr[part_row[part]] ? 1 : 0); row < row_end; ++row)
        for (const I row_ends = min(indptr[row + 1], end); entry < row_ends; ++entry)
            rows[entry] = row;
% if value_bytes:
    for (entry = part_entry[part]; entry < end; ++entry) {
        columns[entry] = indices[entry];
        copied[entry] = values[entry];
    }
% endif
}
