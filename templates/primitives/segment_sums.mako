<%doc>
The sum of each segment, by lanes that take a segment together. `whole`: a work-group takes `per_group` segments, which is for
lengths that are alike. Otherwise a work-group takes a part of equal weight, whatever the lengths of segments are: a segment
weighs 1 for its beginning, and 1 for each entry. Part p begins with entry p * `step` - cuts[p], where cuts[p] is the first
segment that begins in the part or later; its sum of a segment that an earlier part began goes to partial[p], for
add_partials.mako.

Source        parts after Merrill and Garland, Section 3 (merge path), with the beginnings of segments in place of their ends;
              lanes after Bell and Garland (CSR-vector), as many as the segments of a part are long
Index space   a work-group for each part, or for each `per_group` segments
Inputs        segment_ptr: n_segments + 1 pointers, valid; n values; `whole`: lanes, a power of two up to the lanes that exchange
Output        sums; of parts cuts, n_parts + 1 of them, and partial sums
Local memory  (`step` + work_group) * sizeof(T) and two numbers; `whole`: none
Result        deterministic: a segment is always summed in the same order
</%doc>
#define SEGMENTED 0
#include "tile_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if whole:
    const ulong n_segments, const ulong per_group, const uint lanes,
    global const I *restrict segment_ptr, global const SOURCE *restrict source, global TARGET *restrict out)
% else:
    const ulong n_segments, const ulong n, global const I *restrict segment_ptr, global const SOURCE *restrict source,
    global ulong *restrict cuts, global T *restrict partial, global TARGET *restrict out)
% endif
{
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
% if whole:
    const ulong first = part * per_group;
    const ulong after = min(first + per_group, n_segments);
% else:
    local T box[${work_group}];
    local T entries[${step}];
    local ulong bounds[2];
    const ulong weight = n + n_segments;
    for (uint i = me; i < 2; i += ${work_group}) {
        const ulong target = min((part + i) * ${step}, weight);
        ulong low = 0, high = n_segments;
        while (low < high) {
            const ulong middle = (low + high) / 2;
            if ((ulong)segment_ptr[middle] + middle < target)
                low = middle + 1;
            else
                high = middle;
        }
        bounds[i] = low;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong first = bounds[0], after = bounds[1];
    const I begin = (I)(part * ${step} - first), end = (I)(min((part + 1) * ${step}, weight) - after);
    // All loads of a work-item's entries are in flight before the first loaded entry is used.
    // Segments are then summed from local memory, where a segment of many entries is cheap.
% for i in range(items):
    const T x_${i} = begin + (I)(me + ${i * work_group}) < end ? LOAD(source, (ulong)(begin + (I)(me + ${i * work_group}))) : ZERO;
% endfor
% for i in range(items):
    entries[me + ${i * work_group}] = x_${i};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        cuts[part] = first;
        if (part == get_num_groups(0) - 1)
            cuts[part + 1] = after;
    }
    // A segment is summed by as many lanes as the mean segment has entries, so that neighbouring lanes read adjacent entries.
    uint lanes = 1;
    while (lanes < ${lanes} && lanes * 2 * (after - first) <= (ulong)(end - begin))
        lanes *= 2;
% endif
    const uint lane = me & (lanes - 1), abreast = ${work_group} / lanes;
    for (ulong from = first; from < after; from += ${unroll} * abreast) {
        // A turn of this loop sums ${unroll} segments side by side, so that the loads of their entries are in flight together.
% for u in range(unroll):
        const ulong s_${u} = from + me / lanes + ${u} * abreast;
        const bool is_${u} = s_${u} < after;
        const I from_${u} = is_${u} ? segment_ptr[s_${u}] : 0;
        const I to_${u} = is_${u} ? ${"segment_ptr[s_%d + 1]" % u if whole else "min(segment_ptr[s_%d + 1], end)" % u} : 0;
        T sum_${u} = ZERO;
% endfor
        const I longest = ${"max(" * (unroll - 1)}to_0 - from_0${"".join(", to_%d - from_%d)" % (u, u) for u in range(1, unroll))};
        for (I i = (I)lane; i < longest; i += (I)lanes) {
% for u in range(unroll):
            const T x_${u} = i < to_${u} - from_${u} ? ${"LOAD(source, (ulong)(from_%d + i))" % u if whole else "entries[from_%d + i - begin]" % u} : ZERO;
% endfor
% for u in range(unroll):
            sum_${u} = ADD(sum_${u}, x_${u});
% endfor
        }
% if lanes > 1:
        for (uint step = 1; step < lanes; step *= 2) {
% for u in range(unroll):
            sum_${u} = ADD(sum_${u}, lanes_xor(sum_${u}, step));
% endfor
        }
% endif
        if (lane == 0) {
% for u in range(unroll):
            if (is_${u})
                out[s_${u}] = (TARGET)(sum_${u});
% endfor
        }
    }
% if not whole:
    // Sum the entries, in this part, of a segment that began in an earlier part.
    const I rest = first < after ? segment_ptr[first] : end;
    T sum = ZERO;
    for (I i = (I)me; i < rest - begin; i += ${work_group})
        sum = ADD(sum, entries[i]);
    const T before = group_before(box, sum);
    if (me == ${work_group - 1})
        partial[part] = ADD(before, sum);
% endif
}
