<%doc>
Places in a matrix as keys, row times columns plus column, by which they are sorted; and their numbers.

Source        own
Index space   work-items that stride over the places, or take adjacent ones: `spread` says which
Inputs        place i, or the listed[i]-th if is_listed, is (i / n_columns, i % n_columns) of a matrix of places, and the axes
              tell its row and column; width: columns of the matrix
Output        keys; numbers: of place i, i
Local memory  none
Result        exact
</%doc>
#include "axis.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong n_columns, AXIS(row), AXIS(column),
    const uint is_listed, global const long *restrict listed, const long width,
    global long *restrict keys, global I *restrict numbers)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step) {
        const ulong place = is_listed ? (ulong)listed[i] : i, r = place < n_columns ? 0 : place / n_columns, c = place - r * n_columns;
        keys[i] = (long)AXIS_AT(row, (long)r, (long)c) * width + AXIS_AT(column, (long)r, (long)c);
        numbers[i] = (I)i;
    }
}
