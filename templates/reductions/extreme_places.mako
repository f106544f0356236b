<%doc>
The column of the first extreme value of each row, stored or not.

Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        a structure in canonical format; extremes: the extreme value of the entries of each row; columns: the first column
              that has it; n_columns: 0 if only entries count
Output        places: of rows without entries 0
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong stride, const ulong step, const ulong span, const ulong n_columns,
    global const I *restrict indptr, global const I *restrict indices,
    global const V *restrict extremes, global const I *restrict columns, global long *restrict places)
{
    const ulong first = get_global_id(0) * stride, end = min(n_rows, first + span);
    for (ulong row = first; row < end; row += step) {
        const I begin = indptr[row], length = indptr[row + 1] - begin;
        const V a = extremes[row], b = (V)(0);
        if (length == 0)
            places[row] = 0;
        else if ((ulong)length >= n_columns || ${beyond})
            places[row] = columns[row];
        else {
            // `missing` becomes the first column without an entry: entry i of the row is in column i for all entries before it.
            I missing = 0, after = length;
            while (missing < after) {
                const I middle = missing + (after - missing) / 2;
                if (indices[begin + middle] == middle)
                    missing = middle + 1;
                else
                    after = middle;
            }
            places[row] = ${is_zero} ? min(columns[row], missing) : missing;
        }
    }
}
