<%doc>
The sum of the entries of the last segment in each part, which later parts may continue: it goes to partial[part + 1].

Source        own; the first part of a segmented scan by reduce-then-scan
Index space   n_parts - 1 work-groups: there is no part behind the last
Inputs        segment_ptr: valid pointers; cuts, of cut_segments.mako with this step
Local memory  work_group * sizeof(T)
Result        deterministic
</%doc>
#define SEGMENTED 0
#include "tile_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong step, global const I *restrict segment_ptr, global const ulong *restrict cuts,
    global const SOURCE *restrict source, global T *restrict partial)
{
    local T box[${work_group}];
    const ulong part = get_group_id(0), first = cuts[part], last = cuts[part + 1];
    const ulong begin = last > first ? (ulong)segment_ptr[last - 1] : part * step - first, end = (part + 1) * step - last;
    T sum = ZERO;
    for (ulong i = begin + get_local_id(0); i < end; i += ${work_group})
        sum = ADD(sum, LOAD(source, i));
    const T before = group_before(box, sum);
    if (get_local_id(0) == ${work_group - 1})
        partial[part + 1] = ADD(before, sum);
    if (part == 0 && get_local_id(0) == 0)
        partial[0] = ZERO;
}
