<%doc>
The union of two matrices C and T: an operation combines the two values if both matrices have an entry, else the one value stays.
Phase "old": copy the entries of C to their places in the result. Phase "new": copy the entries of T that C lacks. Phase "rows":
the row pointers. Phase "values": C and T have the same structure, and the results overwrite C's values.

Source        GraphBLAS, element-wise addition
Index space   work-items that stride over entries or offsets, or take adjacent ones: `spread` says which
Inputs        C and T in canonical format; of phase "old" the rows of C's entries, of "new" those of T's; before: for each entry
              of T, the number of earlier entries of T that C lacks, and one more number for all
Local memory  none
Result        exact but for the operation
</%doc>
#include "first_from.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
% if phase == "values":
    global const X_VALUE *restrict t_data, global A_VALUE *restrict c_data)
% else:
    global const I *restrict c_indptr, global const I *restrict t_indptr, global const I *restrict before,
% if phase == "rows":
    global I *restrict out_indptr)
% else:
    global const I *restrict rows,
    global const I *restrict c_indices, global const A_VALUE *restrict c_data,
    global const I *restrict t_indices, global const X_VALUE *restrict t_data,
    global I *restrict out_indices, global C_VALUE *restrict out_data)
% endif
% endif
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong k = begin; k < end; k += step) {
% if phase == "rows":
        out_indptr[k] = c_indptr[k] + before[t_indptr[k]];
% elif phase == "values":
        c_data[k] = accumulate(from_a(c_data[k]), from_x(t_data[k]));
% elif phase == "old":
        const I row = rows[k], column = c_indices[k], last = t_indptr[row + 1];
        const I t = first_from(t_indices, t_indptr[row], last, column), out = (I)k + before[t];
        out_indices[out] = column;
        out_data[out] = t < last && t_indices[t] == column ? accumulate(from_a(c_data[k]), from_x(t_data[t])) : of_old(c_data[k]);
% else:
        if (before[k + 1] != before[k]) {
            const I row = rows[k], column = t_indices[k];
            const I out = before[k] + first_from(c_indices, c_indptr[row], c_indptr[row + 1], column);
            out_indices[out] = column;
            out_data[out] = of_new(t_data[k]);
        }
% endif
    }
}
