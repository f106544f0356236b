<%doc>
The positions of marks, side by side.

Index space   work-items that stride over the marks, or take adjacent ones: `spread` says which
Inputs        places: n + 1, how many marks come before each position; one is marked if the next place is another
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict places, global I *restrict positions)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step)
        if (places[i + 1] != places[i])
            positions[places[i]] = (I)i;
}
