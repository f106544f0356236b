<%doc>
The coordinates that entries have in a matrix of another shape, whose places are numbered alike.

Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        the place of an entry is row * by_row + column * by_column, which 64 bits hold
Output        quotients[k], rests[k]: the place of entry k divided by `divisor`
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    const ulong by_row, const ulong by_column, const ulong divisor,
    global const I *restrict rows, global const I *restrict columns, global J *restrict quotients, global J *restrict rests)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong k = begin; k < end; k += step) {
        const ulong place = (ulong)rows[k] * by_row + (ulong)columns[k] * by_column, quotient = place / divisor;
        quotients[k] = (J)quotient;
        rests[k] = (J)(place - quotient * divisor);
    }
}
