<%doc>
The lengths of listed rows of a matrix.

Index space   a work-group for each `tile` indices; of these work-item i takes `span` from i * stride on, step apart
Inputs        row_indices: integers of any type, negative ones counted from the end; in any order, repeated or not
Output        lengths: 0 for an index out of range; sums: a zero, then the sum of each work-group's lengths; report: two numbers
              per work-group, that sum and the number of indices out of range
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong tile, const ulong stride, const ulong step, const ulong span, const long n_rows,
    global const ${listed_type} *restrict row_indices, global const I *restrict indptr,
    global I *restrict lengths, global I *restrict sums, global long *restrict report)
{
    SHARED long box[${work_group}];
    const ulong group = get_group_id(0), first = get_local_id(0) * stride;
    const ulong begin = group * tile + first, end = min(n, group * tile + min(tile, first + span));
    long n_outside = 0, n_entries = 0;
    // A turn of this loop looks up ${items} rows, so that loads of the rows' lengths are in flight together.
    for (ulong i = begin; i < end; i += ${items} * step) {
% for u in range(items):
        const bool active_${u} = i + ${u} * step < end;
        const ${listed_type} index_${u} = active_${u} ? row_indices[i + ${u} * step] : 0;
% endfor
% for u in range(items):
% if is_signed:
        const bool is_in_${u} = active_${u} && index_${u} >= -n_rows && index_${u} < n_rows;
        const I row_${u} = is_in_${u} ? (I)(index_${u} < 0 ? (long)index_${u} + n_rows : (long)index_${u}) : 0;
% else:
        const bool is_in_${u} = active_${u} && (ulong)index_${u} < (ulong)n_rows;
        const I row_${u} = is_in_${u} ? (I)index_${u} : 0;
% endif
        const I length_${u} = is_in_${u} ? indptr[row_${u} + 1] - indptr[row_${u}] : 0;
% endfor
% for u in range(items):
        if (active_${u}) {
            lengths[i + ${u} * step] = length_${u};
            n_entries += length_${u};
            n_outside += !is_in_${u};
        }
% endfor
    }
    n_outside = group_reduce_add(box, n_outside);
    n_entries = group_reduce_add(box, n_entries);
    if (get_local_id(0) == 0) {
        // If the sum of row lengths overflows the index type I, the host sees it by the sum of 64 bits in the array report.
        sums[group + 1] = (I)n_entries;
        report[2 * group] = n_entries;
        report[2 * group + 1] = n_outside;
        if (group == 0)
            sums[0] = 0;
    }
}
