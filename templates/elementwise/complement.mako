<%doc>
The places of a matrix at which a pattern has no entry, as a matrix of booleans that are all True.

Index space   work-items that stride over the places, or take adjacent ones: `spread` says which; there is one at least for each
              row
Inputs        the pattern, in canonical format; n_places: rows times columns
Output        of the complement: indptr from its second number on, indices, values
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_places, const ulong stride, const ulong step, const ulong span, const ulong n_columns,
    global const P *restrict pattern_indptr, global const P *restrict pattern_indices,
    global I *restrict indptr, global I *restrict indices, global uchar *restrict values)
{
    const ulong begin = get_global_id(0) * stride, end = min(n_places, begin + span);
    for (ulong place = begin; place < end; place += step) {
        const ulong row = place / n_columns;
        const P column = (P)(place - row * n_columns);
        // `before` becomes the number of the pattern's entries before this place, by a binary search.
        P before = pattern_indptr[row], after = pattern_indptr[row + 1];
        const P row_end = after;
        while (before < after) {
            const P middle = before + (after - before) / 2;
            if (pattern_indices[middle] < column)
                before = middle + 1;
            else
                after = middle;
        }
        if (before == row_end || pattern_indices[before] != column) {
            indices[place - before] = (I)column;
            values[place - before] = 1;
        }
        if (column == n_columns - 1)
            indptr[row + 1] = (I)((row + 1) * n_columns - row_end);
    }
}
