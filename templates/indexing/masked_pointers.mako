<%doc>
Where the rows that a mask leaves begin in the result: among all rows, and among those that are left.

Index space   work-items that stride over the rows and the end, or take adjacent ones: `spread` says which
Inputs        places: of n rows, the exclusive scan of what masked.mako found, with the total behind it
Output        starts: n + 1, of a row that is not left that of the next one; offsets: of the rows that are left, and the end
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const ulong n_rows,
    global const long *restrict places, global I *restrict starts, global I *restrict offsets)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step) {
        const long place = places[i];
        const I start = (I)(place & 0xffffffff);
        starts[i] = start;
        if (i == n_rows || places[i + 1] >> 32 != place >> 32)
            offsets[place >> 32] = start;
    }
}
