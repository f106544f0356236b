<%doc>
How many entries some rows of a matrix have.

Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        rows: positions, in any order, repeated or not
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict rows, global const I *restrict indptr, global ${length} *restrict lengths)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step)
        lengths[i] = (${length})(indptr[rows[i] + 1] - indptr[rows[i]]);
}
