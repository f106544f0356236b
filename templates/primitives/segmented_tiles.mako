<%doc>
The scan of each segment, a work-group to a part of equal weight, whatever the lengths of segments are: an entry of out is the sum
of the entries of its segment before it, `inclusive`: up to and including it.

The entries of a part are scanned in local memory, beginning anew where a segment begins. partial[part] is the sum of earlier
parts' entries of the segment that is continued in the part.

Source        Blelloch, Heroux and Zagha, "Segmented operations for sparse matrix computation on vector multiprocessors"; parts
              after Merrill and Garland (merge path)
Index space   n_parts work-groups
Inputs        segment_ptr: n_segments + 1 pointers, valid; cuts, of cut_segments.mako with step work_group * items; n
              values, which may be the array out
Local memory  work_group * items * (sizeof(T) + 1) and work_group * (sizeof(T) + sizeof(uint))
Result        deterministic: a segment is always summed in the same order
</%doc>
#define ITEMS ${items}
#define INCLUSIVE ${int(inclusive)}
#define SEGMENTED 1
#include "tile_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_segments, const ulong n, global const I *restrict segment_ptr, global const ulong *restrict cuts,
    global const SOURCE *source, global const T *restrict partial, global TARGET *out)
{
    local T entries[${work_group * items}];
    local uchar heads[${work_group * items}];
    local T box[${work_group}];
    local uint head_box[${work_group}];
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
    const ulong first = cuts[part], last = cuts[part + 1];
    const ulong begin = part * ${work_group * items} - first;
    const ulong end = min((part + 1) * ${work_group * items}, n + n_segments) - last;
    const uint n_valid = (uint)(end - begin), n_heads = (uint)(last - first);
    // All loads of a work-item's entries are in flight before the first loaded entry is used.
    if (n_valid == ${work_group * items}) {
% for i in range(items):
        const T x_${i} = LOAD(source, begin + (me + ${i * work_group}));
% endfor
% for i in range(items):
        entries[me + ${i * work_group}] = x_${i};
% endfor
    } else {
% for i in range(items):
        const T x_${i} = me + ${i * work_group} < n_valid ? LOAD(source, begin + (me + ${i * work_group})) : ZERO;
% endfor
% for i in range(items):
        entries[me + ${i * work_group}] = x_${i};
% endfor
    }
% for i in range(items):
    heads[me + ${i * work_group}] = 0;
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    // Of several segments that begin at an entry, all but the last are empty.
    for (uint s = me; s < n_heads; s += ${work_group})
        if (segment_ptr[first + s] < segment_ptr[first + s + 1])
            heads[segment_ptr[first + s] - begin] = 1;
    tile_scan(entries, heads, box, head_box, partial[part]);
% for i in range(items):
    if (me + ${i * work_group} < n_valid)
        out[begin + (me + ${i * work_group})] = (TARGET)(entries[me + ${i * work_group}]);
% endfor
}
