<%doc>
How far entries are from being sorted by row, then by column, without duplicates.

Index space   any number of work-groups; work-item i takes span entries from i * stride on, step apart
Inputs        rows, columns: of n entries
Output        told: three numbers for each work-group. Entries whose row is below that of the entry before; of those that have the
              row of the entry before, how many have a column below its; and how many the same
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict rows, global const I *restrict columns, global long *restrict told)
{
    SHARED long box[${work_group}];
    const ulong begin = get_global_id(0) * stride, end = min(begin + span, n);
    long fallen = 0, unsorted = 0, repeated = 0;
    // The first entry has none before it.
    for (ulong k = begin ? begin : step; k < end; k += step) {
        fallen += rows[k] < rows[k - 1];
        unsorted += rows[k] == rows[k - 1] && columns[k] < columns[k - 1];
        repeated += rows[k] == rows[k - 1] && columns[k] == columns[k - 1];
    }
    fallen = group_reduce_add(box, fallen);
    unsorted = group_reduce_add(box, unsorted);
    repeated = group_reduce_add(box, repeated);
    if (get_local_id(0) == 0) {
        global long *out = told + 3 * get_group_id(0);
        out[0] = fallen;
        out[1] = unsorted;
        out[2] = repeated;
    }
}
