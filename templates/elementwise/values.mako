<%doc>
Apply an operation to each value of an array, and to a scalar if it takes one.

Index space   work-items that stride over the values, or take adjacent ones: `spread` says which
Inputs        values; scalar, in the type that is computed in
Local memory  none
Result        rounded once
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
% if scalar:
    const T scalar,
% endif
    global const A_VALUE *restrict values, global C_VALUE *restrict results)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step)
        results[i] = operate(from_a(values[i])${", scalar" if scalar else ""});
}
