<%doc>
Solve rows of a triangular system, level by level: the unknowns that a row needs were solved in levels before. Entries on the
other side of the diagonal are passed over, and with `unit` entries on the diagonal.

Source        Anderson and Saad, "Solving sparse triangular linear systems on parallel computers"
Index space   several levels: one work-group; one level: any number. Work-items stride over the rows of a level and the columns
Inputs        order: rows by level; starts: where each level begins in it, with the end; levels first up to, not including, last;
              b: of n x columns, row by row, as x is
Output        x: rows of these levels
Local memory  none. Of one work-item it is the plain kernel
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint first, const uint last, const ulong columns, global const int *restrict starts, global const int *restrict order,
    global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global const T *restrict b, global T *x)
{
    for (uint level = first; level < last; ++level) {
        const ulong begin = (ulong)starts[level] * columns, end = (ulong)starts[level + 1] * columns;
        for (ulong i = begin + get_global_id(0); i < end; i += get_global_size(0)) {
            const ulong at = columns == 1 ? i : i / columns, column = i - at * columns;
            const I row = order[at];
            T sum = b[row * columns + column], diagonal = of_real(${1 if unit else 0});
            for (I k = indptr[row]; k < indptr[row + 1]; ++k) {
                const I j = indices[k];
                if (j ${">" if upper else "<"} row)
                    sum -= times(values[k], x[j * columns + column]);
% if not unit:
                if (j == row)
                    diagonal += values[k];
% endif
            }
            x[row * columns + column] = ${"sum" if unit else "quotient(sum, diagonal)"};
        }
% if work_group > 1:
        barrier(CLK_GLOBAL_MEM_FENCE);
% endif
    }
}
