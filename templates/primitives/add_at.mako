<%doc>
out[positions[k]] += values[k].

Source        own
Index space   any number of work-items; work-item i takes span entries from i * stride on, step apart
Inputs        positions are different
Local memory  none
Result        one sum an entry
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    global const I *restrict positions, global const V *restrict values, global V *restrict out)
{
    const ulong begin = get_global_id(0) * stride, end = min(begin + span, n);
    for (ulong k = begin; k < end; k += step) {
        const I place = positions[k];
        out[place] = SUM(out[place], values[k]);
    }
}
