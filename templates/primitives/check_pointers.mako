<%doc>
Whether pointers begin with 0, never decrease, and end with a length. The kernel trusts nothing but their number.

Index space   any number of work-items, which take pointers in turn; `adjacent`: a work-item takes neighbouring ones
Inputs        n_pairs + 1 pointers, unchecked
Output        report[3 * group + i], to be summed over the groups: 0 how often pointers decrease; and from group 0 alone: 1 the
              first pointer, 2 the last
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n_pairs, global const I *restrict pointers, global long *restrict report)
{
    SHARED long box[${work_group}];
    long decreasing = 0;
% if adjacent:
    const ulong span = (n_pairs + get_global_size(0) - 1) / get_global_size(0);
    const ulong begin = get_global_id(0) * span, end = min(begin + span, n_pairs);
    for (ulong i = begin; i < end; ++i)
% else:
    for (ulong i = get_global_id(0); i < n_pairs; i += get_global_size(0))
% endif
        decreasing += pointers[i + 1] < pointers[i];
    decreasing = group_reduce_add(box, decreasing);
    if (get_local_id(0) == 0) {
        global long *group_report = report + 3 * get_group_id(0);
        group_report[0] = decreasing;
        group_report[1] = get_group_id(0) == 0 ? pointers[0] : 0;
        group_report[2] = get_group_id(0) == 0 ? pointers[n_pairs] : 0;
    }
}
