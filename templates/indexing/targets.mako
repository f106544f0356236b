<%doc>
For each column of a matrix its position in a list of selected columns, for a selection that has each column once.

Index space   any number of work-groups; work-item i takes span indices from i * stride on, step apart
Inputs        column_indices: integers of any type; targets: -1 for each column
Output        targets: the position in the list of each column, any of them if it is listed several times; report: two numbers
              per work-group, indices out of range and repeated columns
Local memory  work_group * sizeof(long)
Result        exact; targets depend on the order of work-items if a column is named several times
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const long n_columns, const ulong first,
    global const ${listed_type} *restrict column_indices, global int *restrict targets, global I *restrict report)
{
    SHARED long box[${work_group}];
    const ulong begin = get_global_id(0) * stride, end = min(begin + span, n);
    long n_outside = 0, n_repeated = 0;
    for (ulong i = begin; i < end; i += step) {
        const ${listed_type} index = column_indices[i];
% if is_signed:
        const bool is_in = index >= -n_columns && index < n_columns;
        const long column = index < 0 ? (long)index + n_columns : (long)index;
% else:
        const bool is_in = (ulong)index < (ulong)n_columns;
        const long column = (long)index;
% endif
        n_outside += !is_in;
        if (is_in)
            n_repeated += atomic_xchg(targets + column, (int)i) >= 0;
    }
    n_outside = group_reduce_add(box, n_outside);
    n_repeated = group_reduce_add(box, n_repeated);
    if (get_local_id(0) == 0) {
        report[first + 2 * get_group_id(0)] = (I)n_outside;
        report[first + 2 * get_group_id(0) + 1] = (I)n_repeated;
    }
}
