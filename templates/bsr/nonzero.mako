<%doc>
Which blocks have an entry that is not 0: a byte for each, 1 or 0.

Source        own
Index space   a work-item for each block
Inputs        n blocks of size values
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n, const ulong size, global const V *restrict blocks, global uchar *restrict marks)
{
    const ulong k = get_global_id(0);
    if (k >= n)
        return;
    bool found = false;
    for (ulong e = k * size; e < (k + 1) * size; ++e)
        found |= ${"blocks[e].x != 0 || blocks[e].y != 0" if is_complex else "blocks[e] != 0"};
    marks[k] = found;
}
