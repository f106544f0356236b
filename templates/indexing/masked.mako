<%doc>
Of each row of a matrix what a mask leaves: in the lower 32 bits how many entries it has, in the upper ones 1; nothing if it is
not marked. Both scanned together say where rows go.

Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        marks: for each row; fewer than 2^31 rows and entries
Output        left
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const uchar *restrict marks, global const I *restrict indptr, global long *restrict left)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step)
        left[i] = marks[i] ? ((long)1 << 32) + (indptr[i + 1] - indptr[i]) : 0;
}
