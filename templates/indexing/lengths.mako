<%doc>
How many entries listed rows of a matrix have.

Index space   a work-group for each `tile` indices; of these work-item i takes `span` from i * stride on, step apart
Inputs        given: indices of rows, integers of any type, those below 0 counted from the end, in any order, repeated or not
Output        lengths, 0 of an index that is out of range; sums: of the lengths of each work-group, behind a zero;
              told: two numbers for each work-group, that sum, and how many of its indices are out of range
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong tile, const ulong stride, const ulong step, const ulong span, const long n_rows,
    global const ${given} *restrict given, global const I *restrict indptr,
    global I *restrict lengths, global I *restrict sums, global long *restrict told)
{
    SHARED long box[${work_group}];
    const ulong group = get_group_id(0), first = get_local_id(0) * stride;
    const ulong begin = group * tile + first, end = min(n, group * tile + min(tile, first + span));
    long n_outside = 0, n_entries = 0;
    // Several at a time, so that their loads are in flight together.
    for (ulong i = begin; i < end; i += ${items} * step) {
% for u in range(items):
        const bool active_${u} = i + ${u} * step < end;
        const ${given} index_${u} = active_${u} ? given[i + ${u} * step] : 0;
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
        // If the sum does not fit, the host sees it in what it is told.
        sums[group + 1] = (I)n_entries;
        told[2 * group] = n_entries;
        told[2 * group + 1] = n_outside;
        if (group == 0)
            sums[0] = 0;
    }
}
