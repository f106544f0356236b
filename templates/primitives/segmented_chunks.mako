<%doc>
Sums and scans of segments by a few long parts of equal weight, for devices whose work-items are the iterations of a core's loop.

Step "sum": the sum of each segment; partial[part]: the part's sum of a segment that an earlier part began. Step "add": add later
parts' sums of a segment to its sum. Step "tails": partial[part]: the part's sum of the last segment in it. Step "scan": the scan
of each segment: for each entry the sum of its segment's entries before it, `inclusive`: up to and including it.

Source        own; parts after Merrill and Garland, SC 2016, Section 4 (merge path, with the beginnings of segments in place of
              their ends: a segment weighs 1 for its beginning, and 1 for each entry)
Index space   a work-item for each of n_parts parts; step "add": one work-item
Inputs        segment_ptr: n_segments + 1 pointers, valid; n values, which may be the array out in step "scan"
Output        cuts: the first segment that begins in each part or later
Local memory  none
Result        deterministic: a segment is always summed in the same order
</%doc>
#include "range_sum.cl"

// The first segment whose beginning stands at step `target` of the merge path of segment beginnings and entries, or later.
ulong segment_at(const ulong target, const ulong n_segments, global const I *segment_ptr)
{
    ulong low = 0, high = n_segments;
    while (low < high) {
        const ulong middle = (low + high) / 2;
        if ((ulong)segment_ptr[middle] + middle < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

% if step == "scan":
// The scan of the entries from i up to end, which begins with `sum`; returns the sum with all entries.
T range_scan(global const SOURCE *source, ulong i, const ulong end, T sum, global TARGET *target)
{
    for (; i < end; ++i) {
        const T next = ADD(sum, LOAD(source, i));
        target[i] = (TARGET)(${"next" if inclusive else "sum"});
        sum = next;
    }
    return sum;
}

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_segments, const ulong n, const ulong n_parts, global const I *restrict segment_ptr, global const SOURCE *source,
    global ulong *restrict cuts, global T *restrict partial, global TARGET *out)
{
    const ulong part = get_global_id(0);
% if step == "add":
    if (part > 0)
        return;
    for (ulong later = 1; later < n_parts; ++later)
        out[cuts[later] - 1] = (TARGET)(ADD((T)(out[cuts[later] - 1]), partial[later]));
% else:
    if (part >= n_parts)
        return;
    const ulong path_length = n_segments + n, step = (path_length + n_parts - 1) / n_parts;
    const ulong path_begin = min(part * step, path_length), path_end = min(path_begin + step, path_length);
    ulong segment = segment_at(path_begin, n_segments, segment_ptr);
    const ulong segment_end = segment_at(path_end, n_segments, segment_ptr), end = path_end - segment_end;
    ulong i = path_begin - segment;
    // The end, in this part, of the rest of a segment that began in an earlier part.
    const ulong rest_end = segment < segment_end ? (ulong)segment_ptr[segment] : end;
% if step == "scan":
    T carry = ZERO;
    for (ulong earlier = 0; earlier < part; ++earlier)
        carry = cuts[earlier + 1] == cuts[earlier] ? ADD(carry, partial[earlier]) : partial[earlier];
    range_scan(source, i, rest_end, carry, out);
    for (; segment < segment_end; ++segment)
        range_scan(source, segment_ptr[segment], min((ulong)segment_ptr[segment + 1], end), ZERO, out);
% else:
    cuts[part] = segment;
% if step == "tails":
    partial[part] = range_sum(source, segment < segment_end ? (ulong)segment_ptr[segment_end - 1] : i, end);
% else:
    partial[part] = range_sum(source, i, rest_end);
    for (; segment < segment_end; ++segment)
        out[segment] = (TARGET)(range_sum(source, segment_ptr[segment], min((ulong)segment_ptr[segment + 1], end)));
% endif
% endif
% endif
}
