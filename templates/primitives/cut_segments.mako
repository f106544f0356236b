<%doc>
Cut segments and their entries into parts of equal weight: a segment weighs 1 for its beginning, and 1 for each entry.

A part is step steps of the merge path of beginnings and entries. Part p begins with entry p * step - cuts[p], where cuts[p] is
the first segment that begins in the part or later.

Source        after Merrill and Garland, Section 3 (merge path), with the beginnings of segments in place of their ends
Index space   n_parts + 1 work-items
Inputs        segment_ptr: n_segments + 1 pointers, valid
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_segments, const ulong n, const ulong n_parts, const ulong step, global const I *restrict segment_ptr,
    global ulong *restrict cuts)
{
    const ulong part = get_global_id(0);
    if (part > n_parts)
        return;
    const ulong target = min(part * step, n + n_segments);
    ulong low = 0, high = n_segments;
    while (low < high) {
        const ulong middle = (low + high) / 2;
        if ((ulong)segment_ptr[middle] + middle < target)
            low = middle + 1;
        else
            high = middle;
    }
    cuts[part] = low;
}
