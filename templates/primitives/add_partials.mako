<%doc>
Add to out[segment] the sums that later parts (stretches of equal weight) have of a segment that an earlier part began.

Index space   a work-group for each part; the work-group of the last part of a segment adds up
Inputs        cuts and partial, of segment_sums.mako: no segment begins in a part whose successor has the same cut
Local memory  work_group * sizeof(T)
Result        deterministic
</%doc>
#define SEGMENTED 0
#include "tile_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(global const ulong *restrict cuts, global const T *restrict partial, global TARGET *restrict out)
{
    local T box[${work_group}];
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0), segment = cuts[part];
    const bool is_last = part > 0 && (part == get_num_groups(0) - 1 || cuts[part + 1] != segment);
    // `first` becomes the first part with a partial sum of the segment: earlier parts have smaller cuts.
    ulong first = part, low = 0;
    if (is_last && cuts[part - 1] == segment)
        while (low < first) {
            const ulong middle = (low + first) / 2;
            if (cuts[middle] < segment)
                low = middle + 1;
            else
                first = middle;
        }
    T sum = ZERO;
    for (ulong p = is_last ? first + me : part + 1; p <= part; p += ${work_group})
        sum = ADD(sum, partial[p]);
    const T before = group_before(box, sum);
    // Index `to` lies inside `out` for the first part, too: a compiler reads out[to] whatever the condition says (quirk 42).
    const ulong to = max(segment, (ulong)1) - 1;
    if (is_last && me == ${work_group - 1})
        out[to] = (TARGET)(ADD((T)(out[to]), ADD(before, sum)));
}
