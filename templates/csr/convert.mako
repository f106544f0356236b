<%doc>
out[i] = in[begin + i * step], converted to out's type: for device arrays that are views, or of another dtype than is needed.

Index space   any number of work-items, which stride over the entries
Inputs        begin and step count entries of in; step may be negative
Local memory  none
Result        exact where the type holds the value; else as `arithmetic.conversion` says
</%doc>
% if fp64:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, global const ${source_type} *restrict in, const long begin, const long step, global ${target_type} *restrict out)
{
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
        const ${source_type} v = in[begin + (long)i * step];
        out[i] = ${converted};
    }
}
