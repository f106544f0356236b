<%doc>
Where adjacent rows of a matrix begin, counted from the first of them.

Index space   work-items that stride over the offsets, or take adjacent ones: `spread` says which
Inputs        first: the first row; n: one more than there are rows
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong first,
    global const I *restrict indptr, global I *restrict offsets)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step)
        offsets[i] = indptr[first + i] - indptr[first];
}
