<%doc>
A few statements for each of n entries: `row` is a row of the table of loops, with the statements and their description.

Source        own
Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        as `row` says
Local memory  none
Result        exact
</%doc>
% for file in row.includes:
#include "${file}"
% endfor

${row.comment}
// Work-items stride over n entries, or take adjacent ones; no local memory; the result is exact.
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    ${row.arguments})
{
    ## Compilers vectorise a loop over entries if they know that its step is 1.
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong ${row.counter} = begin; ${row.counter} < end; ${"++" + row.counter if work_group == 1 else row.counter + " += step"}) {
% for line in row.statements:
        ${line}
% endfor
    }
% for line in row.epilogue:
    ${line}
% endfor
}
