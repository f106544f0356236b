<%doc>
Count the entries that violate the order by row, then column, and the duplicates.

Index space   any number of work-groups; work-item i takes span entries from i * stride on, step apart
Inputs        rows, columns: of n entries
Output        counts: three numbers per work-group, each compared with the entry before: entries with a smaller row; entries with
              the same row and a smaller column; entries with the same row and column
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict rows, global const I *restrict columns, global long *restrict counts)
{
    SHARED long box[${work_group}];
    const ulong begin = get_global_id(0) * stride, end = min(begin + span, n);
    long fallen = 0, unsorted = 0, repeated = 0;
    // Entry 0 of the matrix, which has no entry before it, is not compared with a predecessor.
    for (ulong k = begin ? begin : step; k < end; k += step) {
        fallen += rows[k] < rows[k - 1];
        unsorted += rows[k] == rows[k - 1] && columns[k] < columns[k - 1];
        repeated += rows[k] == rows[k - 1] && columns[k] == columns[k - 1];
    }
    fallen = group_reduce_add(box, fallen);
    unsorted = group_reduce_add(box, unsorted);
    repeated = group_reduce_add(box, repeated);
    if (get_local_id(0) == 0) {
        global long *group_counts = counts + 3 * get_group_id(0);
        group_counts[0] = fallen;
        group_counts[1] = unsorted;
        group_counts[2] = repeated;
    }
}
