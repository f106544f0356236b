<%doc>
out[k] = values[positions[k]].

Source        own
Index space   any number of work-items; work-item i takes span entries from i * stride on, step apart
Inputs        values begin offset entries into their buffer
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict positions, global const V *restrict values, const ulong offset, global V *restrict out)
{
    const ulong begin = get_global_id(0) * stride, end = min(begin + span, n);
    for (ulong k = begin; k < end; k += step)
        out[k] = values[offset + positions[k]];
}
