<%doc>
Cut the rows and entries of a matrix into parts of equal weight: the row and entry with which part p begins.

A row weighs row_weight for itself, at its beginning, and 1 for each entry. With row_weight 0 parts have equal entries, with 1
they are the diagonals of the merge path of row beginnings and entries. A cut inside a row whose rest is at most slack entries
moves to the row's end.

Source        after Merrill and Garland, Section 3 (merge path), with the beginnings of rows in place of their ends
Index space   n_parts + 1 work-items
Inputs        indptr; slack below step
Output        part_row[p]: the first row that begins at or after the cut; part_entry[p]: the first entry after it;
              part_cut[p]: 1 where the cut lies inside row part_row[p] - 1, else 0
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const I n_entries, const long step, const long row_weight, const I slack, const I n_parts,
    global const I *restrict indptr,
    global I *restrict part_row, global I *restrict part_entry, global I *restrict part_cut)
{
    const ulong part = get_global_id(0);
    if (part > n_parts)
        return;
    const long target = (long)part * step;
    I low = 0, high = n_rows;
    while (low < high) {
        const I middle = low + (high - low) / 2;
        if (indptr[middle] + row_weight * middle >= target)
            high = middle;
        else
            low = middle + 1;
    }
    I entry = indptr[low];
    bool cut = false;
    if (low > 0 && part < n_parts) {
        const I inside = (I)max(target - row_weight * low, (long)indptr[low - 1]);
        cut = entry - inside > slack;
        if (cut)
            entry = inside;
    }
    if (part == n_parts) {
        low = n_rows;
        entry = n_entries;
    }
    part_row[part] = low;
    part_entry[part] = entry;
    part_cut[part] = cut;
}
