<%doc>
Which entries of an adjacency matrix lead to a vertex of higher degree or, of the same degree, to one with a larger number: each
edge in one direction, so that no cycle is left.

Source        own; the order by degree is that of Latapy, Main-memory triangle computations for very large graphs
Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        the rows and columns of the entries of a square matrix
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict rows, global const I *restrict columns, global const I *restrict indptr, global uchar *restrict marks)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong k = begin; k < end; k += step) {
        const I row = rows[k], column = columns[k];
        const I here = indptr[row + 1] - indptr[row], there = indptr[column + 1] - indptr[column];
        marks[k] = here < there || (here == there && row < column);
    }
}
