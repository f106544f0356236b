<%doc>
y[row] += alpha * (the partial sums of the row's later pieces), for rows that several work-groups share.

Index space   ceil(n_cut * X / work_group) work-groups, X consecutive work-items to a row
Inputs        the first piece of each row is in y, scaled; the others are partial[first[i]] to partial[last[i]]
Local memory  work_group * sizeof(T) where X exceeds the lane width, else none
Result        deterministic: pieces are always added in the same order
</%doc>
#define MAX_LANES ${lanes}
#include "lanes_t.cl"
#include "spmv.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    const I n_cut, global const I *restrict cut_row, global const I *restrict first, global const I *restrict last,
    global const T *restrict partial)
{
% if needs_box:
    local T box[${work_group}];
% else:
    local T *box = 0;
% endif
    const ulong i = get_global_id(0) / ${lanes};
    const uint lane = get_local_id(0) % ${lanes};
    const bool active = i < n_cut;
    T sum = ZERO;
    if (active)
        for (I piece = first[i] + lane; piece <= last[i]; piece += ${lanes})
            sum = ADD(sum, partial[piece]);
    sum = lanes_reduce(box, sum, ${lanes});
    if (active && lane == 0)
        update_more(SCALE_ARGUMENTS y_base + y_offset + cut_row[i], sum);
}
