<%doc>
out[segment] += sums that later parts have of a segment that an earlier part began.

Index space   n_parts work-items, a part each
Inputs        cuts, of cut_segments.mako; partial: the parts' sums of the segment before the first that begins in them,
              scanned over the parts of the same segment, so that the sum stands at the last of them
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n_parts, global const ulong *restrict cuts, global const T *restrict partial, global TARGET *restrict out)
{
    const ulong part = get_global_id(0);
    if (part > 0 && part < n_parts && (part == n_parts - 1 || cuts[part + 1] != cuts[part]))
        out[cuts[part] - 1] = (TARGET)(ADD((T)(out[cuts[part] - 1]), partial[part]));
}
