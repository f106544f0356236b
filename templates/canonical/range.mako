<%doc>
The number of coordinates outside [0, length), and the largest coordinate: a check of rows or columns that users give.

Index space   any number of work-groups; work-item i takes span numbers from i * stride on, step apart
Output        report[2 * group]: coordinates outside; report[2 * group + 1]: the largest coordinate, or -1 if all are below 0
Local memory  work_group * sizeof(long)
Result        exact; numbers that do not fit 63 bits count as outside
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n, const ulong stride, const ulong step, const ulong span, const long length,
    global const ${number} *restrict numbers, global long *restrict report)
{
    SHARED long box[${work_group}];
    long outside = 0, negated = 1;
    const ulong begin = get_global_id(0) * stride, end = min(begin + span, n);
    for (ulong k = begin; k < end; k += step) {
        const long v = (long)numbers[k];
        outside += v < 0 || v >= length;
        negated = v < 0 ? negated : min(negated, -v);
    }
    outside = group_reduce_add(box, outside);
    negated = group_reduce_min(box, negated);
    if (get_local_id(0) == 0) {
        report[2 * get_group_id(0)] = outside;
        report[2 * get_group_id(0) + 1] = -negated;
    }
}
