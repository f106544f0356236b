<%doc>
The place of the first extreme entry of a matrix, and the first place without an entry, counted row by row.

Index space   one work-item
Inputs        a structure in canonical format with an entry; position: of the extreme entry
Output        places: of both; the second is n_rows * n_columns if each place has an entry
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong n_columns, global const I *restrict indptr, global const I *restrict indices,
    global const I *restrict position, global long *restrict places)
{
    if (get_global_id(0) > 0)
        return;
    // The row of the extreme entry is the last row that begins at or before the entry.
    ulong row = 0, after = n_rows;
    while (after - row > 1) {
        const ulong middle = (row + after) / 2;
        if (indptr[middle] <= position[0])
            row = middle;
        else
            after = middle;
    }
    places[0] = (long)(row * n_columns) + indices[position[0]];

    // `full` becomes the first row with a place without entry: rows before it are full, and end at multiples of n_columns.
    ulong full = 0;
    after = n_rows;
    while (full < after) {
        const ulong middle = (full + after) / 2;
        if ((ulong)indptr[middle + 1] == (middle + 1) * n_columns)
            full = middle + 1;
        else
            after = middle;
    }
    ulong missing = 0;
    if (full < n_rows) {
        const I begin = indptr[full];
        after = (ulong)(indptr[full + 1] - begin);
        while (missing < after) {
            const ulong middle = (missing + after) / 2;
            if ((ulong)indices[(ulong)begin + middle] == middle)
                missing = middle + 1;
            else
                after = middle;
        }
    }
    places[1] = (long)(full * n_columns + missing);
}
