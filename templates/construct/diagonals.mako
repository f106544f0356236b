<%doc>
A sparse matrix from its diagonals: row pointers, columns and values.

Index space   a work-item for each row, and one for the end
Inputs        table: for each diagonal, by ascending offset, the offset, its first row, how many rows it has, where its values
              begin, and the step between them, which is 0 if one value stands for all; numbers of a kind stand side by side
Local memory  none
Result        canonical
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong n_diagonals, global const long *restrict table, global const V *restrict values,
    global I *restrict indptr, global I *restrict indices, global V *restrict entries)
{
    const ulong row = get_global_id(0);
    if (row > n_rows)
        return;
    global const long *first_row = table + n_diagonals, *length = first_row + n_diagonals;
    global const long *begin = length + n_diagonals, *step = begin + n_diagonals;
    long at = 0;
    for (ulong d = 0; d < n_diagonals; ++d)
        at += clamp((long)row - first_row[d], 0L, length[d]);
    indptr[row] = (I)at;
    if (row == n_rows)
        return;
    for (ulong d = 0; d < n_diagonals; ++d) {
        const long place = (long)row - first_row[d];
        if (place >= 0 && place < length[d]) {
            indices[at] = (I)((long)row + table[d]);
            entries[at] = values[begin[d] + place * step[d]];
            ++at;
        }
    }
}
