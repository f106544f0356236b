<%doc>
A few statements for each of n entries: `of` is a row of the table of such kernels, which says what it computes.

Source        own
Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        as `of` says
Local memory  none
Result        exact
</%doc>
% for file in of.includes:
#include "${file}"
% endfor

${of.comment}
// Work-items stride over n entries, or take adjacent ones; no local memory; the result is exact.
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    ${of.arguments})
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong ${of.entry} = begin; ${of.entry} < end; ${of.entry} += step) {
% for line in of.lines:
        ${line}
% endfor
    }
% for line in of.last:
    ${line}
% endfor
}
