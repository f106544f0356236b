<%doc>
Which entries are not zero: kept[k] is 1 where data[k] differs from 0, as NaN does, and 0 elsewhere.

Index space   an entry to a work-item
Local memory  none
Result        exact
</%doc>
% if fp64:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n, global const ${number} *restrict data, global uchar *restrict kept)
{
    const ulong k = get_global_id(0);
    if (k < n) {
        const ${number} v = data[k];
        kept[k] = ${"v.x != 0 || v.y != 0" if is_complex else "v != 0"};
    }
}
