<%doc>
As columns.mako, one work-item to a long chunk of adjacent entries: for devices whose work-items are the iterations of a core's
loop. Phase "count": how many entries of the result a chunk makes; phase "fill": these entries, and where rows begin.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   n_parts work-items
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako; columns as of columns.mako; "fill": starts, the
              exclusive scan of counts
Output        "count": counts; "fill": indptr, indices and values of the result
Local memory  none
Result        exact
</%doc>
<% fill = phase == "fill" %>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_parts, global const I *restrict part_entry,
% if listed:
    global const I *restrict offsets,
% else:
    const I first, const I column_step, const I n_taken,
% endif
    global const I *restrict indices,
% if fill:
    global const I *restrict part_row, const I n_rows, global const I *restrict indptr,
% if listed:
    global const I *restrict targets,
% endif
    global const V *restrict values, global const ${place} *restrict starts,
    global I *restrict out_indptr, global I *restrict out_indices, global V *restrict out_values)
% else:
    global ${place} *restrict counts)
% endif
{
    const ulong part = get_global_id(0);
    if (part >= n_parts)
        return;
    const I end = part_entry[part + 1];
    I k = part_entry[part];
% if fill:
    ${place} place = starts[part];
    // The first row of a part of the matrix may begin before the part.
    I row = part_row[part];
    const I row_end = part_row[part + 1];
    I next = indptr[row];
    while (true) {
        const I piece_end = min(next, end);
        for (; k < piece_end; ++k) {
% else:
    ${place} place = 0;
    for (; k < end; ++k) {
% endif
            const I column = indices[k];
% if listed:
% if fill:
            const V value = values[k];
            for (I i = offsets[column]; i < offsets[column + 1]; ++i) {
                out_indices[place] = targets[i];
                out_values[place] = value;
                ++place;
            }
% else:
            place += offsets[column + 1] - offsets[column];
% endif
% else:
            const I distance = column - first, result_column = column_step == 1 ? distance : distance / column_step;
            const bool is_kept = result_column >= 0 && result_column < n_taken && result_column * column_step == distance;
% if fill:
            if (is_kept) {
                out_indices[place] = result_column;
                out_values[place] = values[k];
                ++place;
            }
% else:
            place += is_kept;
% endif
% endif
% if fill:
        }
        if (row == row_end)
            break;
        out_indptr[row] = (I)place;
        ++row;
        next = indptr[row];
    }
    if (part == n_parts - 1)
        out_indptr[n_rows] = (I)place;
% else:
    }
    counts[part] = place;
% endif
}
