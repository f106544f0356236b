<%doc>
Turn a caller's indices into positions along an axis: indices below 0 count from the axis's end.

Index space   any number of work-groups; work-item i takes span indices from i * stride on, step apart
Inputs        listed: integers of any type
Output        positions: 0 for an index out of range; outside: the number of indices out of range, per work-group
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const long length,
    global const ${listed_type} *restrict listed, global I *restrict positions, global long *restrict outside)
{
    SHARED long box[${work_group}];
    const ulong begin = get_global_id(0) * stride, end = min(begin + span, n);
    long n_outside = 0;
    for (ulong i = begin; i < end; i += step) {
        const ${listed_type} index = listed[i];
% if is_signed:
        const bool is_in = index >= -length && index < length;
        const long position = index < 0 ? (long)index + length : (long)index;
% else:
        const bool is_in = (ulong)index < (ulong)length;
        const long position = (long)index;
% endif
        positions[i] = is_in ? (I)position : 0;
        n_outside += !is_in;
    }
    n_outside = group_reduce_add(box, n_outside);
    if (get_local_id(0) == 0)
        outside[get_group_id(0)] = n_outside;
}
