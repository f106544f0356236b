<%doc>
How many entries listed rows of a matrix have, and the positions that the indices of rows stand for: those below 0 count from
the end.

Index space   any number of work-groups; work-item i takes span indices from i * stride on, step apart
Inputs        given: indices of rows, integers of any type, in any order, repeated or not
Output        positions: of an index that is out of range, 0; lengths: n numbers, one is left out, then a number for each work-
              group: how many of its indices are out of range
Local memory  work_group * sizeof(long)
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const long n_rows,
    global const ${given} *restrict given, global const I *restrict indptr,
    global I *restrict positions, global ${length} *restrict lengths)
{
    local long box[${work_group}];
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    long n_outside = 0;
    for (ulong i = begin; i < end; i += step) {
        const ${given} index = given[i];
% if is_signed:
        const bool is_in = index >= -n_rows && index < n_rows;
        const I row = is_in ? (I)(index < 0 ? (long)index + n_rows : (long)index) : 0;
% else:
        const bool is_in = (ulong)index < (ulong)n_rows;
        const I row = is_in ? (I)index : 0;
% endif
        positions[i] = row;
        lengths[i] = is_in ? (${length})(indptr[row + 1] - indptr[row]) : 0;
        n_outside += !is_in;
    }
    n_outside = group_reduce_add(box, n_outside);
    if (get_local_id(0) == 0)
        lengths[n + 1 + get_group_id(0)] = (${length})n_outside;
}
