<%doc>
Do pointers begin at 0, never decrease, and end at a length? Trusts nothing but their number.

Index space   any number of work-groups, which stride over the pointers
Inputs        n pointers, at least one, unchecked
Output        found[3 * group + i], to be summed over the groups: 0 how many are below the one before; and from group 0 alone:
              1 the first, 2 the last
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n, global const I *restrict pointers, global long *restrict found)
{
    local long box[${work_group}];
    long decreasing = 0;
    for (ulong i = get_global_id(0) + 1; i < n; i += get_global_size(0))
        decreasing += pointers[i] < pointers[i - 1];
    decreasing = group_reduce_add(box, decreasing);
    if (get_local_id(0) == 0) {
        global long *out = found + 3 * get_group_id(0);
        out[0] = decreasing;
        out[1] = get_group_id(0) == 0 ? pointers[0] : 0;
        out[2] = get_group_id(0) == 0 ? pointers[n - 1] : 0;
    }
}
