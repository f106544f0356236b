<%doc>
The rows, and values or `positions`, of the pairs of insert.mako.

Source        own
Index space   any number of work-items, which stride over the pairs
Inputs        n pairs
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, global const ulong *restrict pairs,
% if not positions:
    global const V *restrict data,
% endif
    global I *restrict rows, global V *restrict out)
{
    for (ulong k = get_global_id(0); k < n; k += get_global_size(0)) {
        const ulong pair = pairs[k];
        rows[k] = (I)(pair >> 32);
        out[k] = ${"(I)(pair & 0xffffffff)" if positions else "data[pair & 0xffffffff]"};
    }
}
