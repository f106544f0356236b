<%doc>
Whether each row of a triangular matrix stores its diagonal entry once, as its last entry (upper: as its first), and no entry
beyond the diagonal, so that a solution need not compare columns.

Source        none
Index space   a work-item to a row, striding
Inputs        indptr, indices: of n rows
Output        other: 1 if a row is otherwise, else unchanged
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const I n, global const I *restrict indptr, global const I *restrict indices, global int *other)
{
    for (ulong item = get_global_id(0); item < (ulong)n; item += get_global_size(0)) {
        const I row = (I)item, begin = indptr[row], end = indptr[row + 1], diagonal = ${"begin" if upper else "end - 1"};
        bool fits = begin < end && indices[diagonal] == row;
        for (I k = begin; fits && k < end; ++k)
            fits = k == diagonal || indices[k] ${">" if upper else "<"} row;
        if (!fits)
            atomic_or(other, 1);
    }
}
