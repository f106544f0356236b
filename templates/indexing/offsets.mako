<%doc>
Where adjacent rows of a matrix begin, counted from the first of them; and their first entry, and how many there are.

Index space   work-items that stride over the offsets, or take adjacent ones: `spread` says which
Inputs        first: the first row; n: one more than there are rows
Output        offsets; told: the first entry of the rows, and how many there are
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong first,
    global const I *restrict indptr, global I *restrict offsets, global I *restrict told)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step)
        offsets[i] = indptr[first + i] - indptr[first];
    if (get_global_id(0) == 0) {
        told[0] = indptr[first];
        told[1] = indptr[first + n - 1] - indptr[first];
    }
}
