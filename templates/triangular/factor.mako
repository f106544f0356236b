<%doc>
The incomplete factors of a matrix, in its own pattern. ILU: L, whose diagonal is 1, below the diagonal, and U on and above it.
IC: L alone, from the lower triangle of a Hermitian matrix. Schedules: "rows" and "levels" eliminate exactly, a row after the rows
that it needs; "sweep" computes each entry from the entries of the sweep before, so that all are computed at the same time;
"guess" makes the entries before the first sweep: those of the matrix, scaled by its diagonal.

Source        Saad, "Iterative Methods for Sparse Linear Systems", 10.3: elimination; Chow and Patel, "Fine-grained parallel
              incomplete LU factorization": sweeps
Index space   "rows": one work-item; "levels": of several levels one work-group, of one level any number, work-items stride over
              its rows; "guess", "sweep": work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        indptr, indices: of n rows, canonical; values: of the matrix; "levels": order: rows by level; starts: where each
              level begins in it, with the end; levels first up to last - 1; "sweep": before: of the factors
Output        factors: all rows, or those of the levels; "sweep": after: of the factors
Local memory  none
Result        deterministic: "rows" and "levels" agree to rounding, as compilers may vectorise sums
</%doc>
<%
    known, result = {"sweep": ("before", "after"), "guess": ("values", "factors")}.get(schedule, ("factors", "factors"))
%>\
#if ${1 if not hermitian else 0}
T entry_at(global const I *restrict indices, global const T *values, I begin, I end, const I column)
{
    while (begin < end) {
        const I middle = begin + (end - begin) / 2;
        if (indices[middle] < column)
            begin = middle + 1;
        else if (indices[middle] > column)
            end = middle;
        else
            return values[middle];
    }
    return of_real(0);
}
#endif

<%def name="factor_row()">\
            const I begin = indptr[row], end = indptr[row + 1];
            for (I k = begin; k < end; ++k) {
                const I column = indices[k];
                T sum = values[k];
% if hermitian and schedule == "guess":
                const T root = of_real(sqrt(magnitude(values[indptr[column + 1] - 1])));
                factors[k] = column == row ? root : quotient(sum, root);
% elif hermitian:
                I at = indptr[column];
                const I last_of_column = indptr[column + 1];
                for (I m = begin; m < k; ++m) {
                    const I inner = indices[m];
                    while (at < last_of_column && indices[at] < inner)
                        ++at;
                    if (at < last_of_column && indices[at] == inner)
                        sum -= times(${known}[m], conjugate(${known}[at]));
                }
                // The diagonal entry is the last entry of a row of the lower triangle.
                ${result}[k] = column == row ? of_real(sqrt(real_part(sum))) : quotient(sum, ${known}[last_of_column - 1]);
% else:
%     if schedule != "guess":
                for (I m = begin; m < end && indices[m] < min(row, column); ++m) {
                    const I inner = indices[m];
                    sum -= times(${known}[m], entry_at(indices, ${known}, indptr[inner], indptr[inner + 1], column));
                }
%     endif
                const bool is_lower = column < row;
                ${result}[k] =
                    is_lower ? quotient(sum, entry_at(indices, ${known}, indptr[column], indptr[column + 1], column)) : sum;
% endif
            }
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if schedule == "levels":
    const uint first, const uint last, global const int *restrict starts, global const int *restrict order,
% else:
    const ulong n, const ulong stride, const ulong step, const ulong span,
% endif
    global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
% if schedule == "sweep":
    global const T *restrict before, global T *restrict after)
% else:
    global T *factors)
% endif
{
% if schedule == "levels":
    for (uint level = first; level < last; ++level) {
        const ulong begin_of_level = starts[level], end_of_level = starts[level + 1];
%     if work_group == 1:
        // A work-item is a core's loop: it takes neighbouring rows.
        const ulong span = (end_of_level - begin_of_level + get_num_groups(0) - 1) / get_num_groups(0);
        const ulong first_row = begin_of_level + get_group_id(0) * span;
        for (ulong i = first_row; i < min(first_row + span, end_of_level); ++i) {
%     else:
        for (ulong i = begin_of_level + get_global_id(0); i < end_of_level; i += get_global_size(0)) {
%     endif
            const I row = order[i];
${factor_row()}\
        }
%     if work_group > 1:
        barrier(CLK_GLOBAL_MEM_FENCE);
%     endif
    }
% else:
    const ulong first_row = get_global_id(0) * stride, last_row = min(n, first_row + span);
    for (ulong place = first_row; place < last_row; place += step) {
        const I row = (I)place;
${factor_row()}\
    }
% endif
}
