<%doc>
The inverse of a matrix's diagonal, 0 where the diagonal is 0 or has no entry; duplicates are added up. `l1`: the inverses of the
sums of the absolute values of each row's entries, 0 where that is 0.

Source        own; `l1`: Baker, Falgout, Kolev and Yang, "Multigrid smoothers for ultraparallel computing"
Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        a valid structure; is_sorted: whether columns ascend, so that rows are searched by bisection
Local memory  none
Result        deterministic: duplicates are added in their order
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint is_sorted, global const I *restrict indptr,
    global const I *restrict indices, global const T *restrict values, global T *restrict inverse)
{
    const ulong begin = get_global_id(0) * stride, last = min(n, begin + span);
    for (ulong row = begin; row < last; row += step) {
        const I end = indptr[row + 1];
        I k = indptr[row];
% if l1:
        R sum = 0;
        for (; k < end; ++k)
            sum += magnitude(values[k]);
        inverse[row] = sum > 0 ? of_real(1 / sum) : ZERO;
% else:
        if (is_sorted) {
            I after = end;
            while (k < after) {
                const I middle = k + (after - k) / 2;
                if (indices[middle] < (I)row)
                    k = middle + 1;
                else
                    after = middle;
            }
        }
        T sum = ZERO;
        for (; k < end && (!is_sorted || indices[k] == (I)row); ++k)
            if (indices[k] == (I)row)
                sum += values[k];
        inverse[row] = magnitude(sum) > 0 ? quotient(of_real(1), sum) : ZERO;
% endif
    }
}
