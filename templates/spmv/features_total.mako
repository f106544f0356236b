<%doc>
The features of a matrix, combined from those that the work-groups of spmv/features found.

Index space   a work-group to a number
Input         features[i * groups + group]: number i of each work-group; the first two numbers are minima, the others sums
Output        total[i]
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong groups, global const long *restrict features, global long *restrict total)
{
    SHARED long box[${work_group}];
    const size_t number = get_group_id(0);
    const bool is_minimum = number < 2;
    long own = is_minimum ? LONG_MAX : 0;
    for (ulong group = get_local_id(0); group < groups; group += ${work_group}) {
        const long other = features[number * groups + group];
        own = is_minimum ? min(own, other) : own + other;
    }
    // Minimum and sum are both computed for every feature: all work-items have to meet at the barriers.
    const long smallest = group_reduce_min(box, own), sum = group_reduce_add(box, own);
    if (get_local_id(0) == 0)
        total[number] = is_minimum ? smallest : sum;
}
