<%doc>
The inverse of a Hermitian positive definite matrix, as a dense one: its lower triangle is swept by each diagonal entry, and
mirrored.

Source        Goodnight, "A tutorial on the SWEEP operator"
Index space   one work-group, on CPU devices of one work-item; rows are shared by teams of lanes
Inputs        a structure in canonical format, of n rows; column: room for n entries
Output        inverse: n x n, row by row; report: the least and the largest pivot, the largest entry of the matrix, and the
              largest entry of its difference from its conjugate transpose. The inverse counts if the least pivot is well above 0
Local memory  none for a work-group of one work-item; else a column of `most` numbers, and a number for each work-item
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global T *restrict inverse, global T *restrict column, global R *restrict report)
% if work_group == 1:
{
    R least_pivot = INFINITY, largest_pivot = 0, largest = 0, difference = 0;
    for (ulong at = 0; at < n * n; ++at)
        inverse[at] = ZERO;
    for (ulong row = 0; row < n; ++row)
        for (I k = indptr[row]; k < indptr[row + 1]; ++k)
            inverse[row * n + indices[k]] = values[k];
    for (ulong row = 0; row < n; ++row)
        for (ulong j = 0; j <= row; ++j) {
            largest = fmax(largest, magnitude(inverse[row * n + j]));
            difference = fmax(difference, magnitude(inverse[row * n + j] - conjugate(inverse[j * n + row])));
        }
    for (ulong k = 0; k < n; ++k) {
        const R pivot = real_part(inverse[k * n + k]);
        // The least pivot stays minus infinity after a pivot that is not positive: the inverse then does not count.
        least_pivot = pivot > 0 ? fmin(least_pivot, pivot) : -INFINITY;
        largest_pivot = fmax(largest_pivot, pivot);
        if (!(least_pivot > 0))
            break;
        for (ulong j = 0; j < k; ++j)
            column[j] = conjugate(inverse[k * n + j]);
        for (ulong row = k; row < n; ++row)
            column[row] = inverse[row * n + k];
        for (ulong row = 0; row < n; ++row) {
            global T *of_row = inverse + row * n;
            const T factor = column[row] * (1 / pivot);
            for (ulong j = 0; j <= row; ++j)
                of_row[j] -= times(factor, conjugate(column[j]));
        }
        for (ulong j = 0; j < k; ++j)
            inverse[k * n + j] = conjugate(column[j]) * (1 / pivot);
        for (ulong row = k; row < n; ++row)
            inverse[row * n + k] = column[row] * (1 / pivot);
        inverse[k * n + k] = of_real(-1 / pivot);
    }
    // The sweeps by diagonal entries leave the negative of the inverse, so all signs are changed.
    for (ulong row = 0; row < n; ++row)
        for (ulong j = 0; j <= row; ++j) {
            const T entry = -inverse[row * n + j];
            inverse[row * n + j] = entry;
            inverse[j * n + row] = conjugate(entry);
        }
    report[0] = least_pivot;
    report[1] = largest_pivot;
    report[2] = largest;
    report[3] = difference;
}
% else:
{
    local T of_k[${most}];
    local R box[${work_group}];
    const uint me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes};
    R least_pivot = INFINITY, largest_pivot = 0, largest = 0, difference = 0;
    for (ulong at = me; at < n * n; at += ${work_group})
        inverse[at] = ZERO;
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (ulong row = team; row < n; row += ${teams})
        for (I k = indptr[row] + lane; k < indptr[row + 1]; k += ${lanes})
            inverse[row * n + indices[k]] = values[k];
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (ulong row = team; row < n; row += ${teams})
        for (ulong j = lane; j <= row; j += ${lanes}) {
            largest = fmax(largest, magnitude(inverse[row * n + j]));
            difference = fmax(difference, magnitude(inverse[row * n + j] - conjugate(inverse[j * n + row])));
        }
    for (uint k = 0; k < ${most}; ++k) {
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
        const R pivot = k < n ? real_part(inverse[k * n + k]) : 1;
        if (k < n) {
            // The least pivot stays minus infinity after a pivot that is not positive: the inverse then does not count.
            least_pivot = pivot > 0 ? fmin(least_pivot, pivot) : -INFINITY;
            largest_pivot = fmax(largest_pivot, pivot);
        }
        const ulong end = k < n && least_pivot > 0 ? n : 0;
        for (ulong row = me; row < end; row += ${work_group})
            of_k[row] = row < k ? conjugate(inverse[k * n + row]) : inverse[row * n + k];
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
        for (ulong row = team; row < end; row += ${teams}) {
            global T *of_row = inverse + row * n;
            const T factor = of_k[row] * (1 / pivot);
            for (ulong j = lane; j <= row; j += ${lanes}) {
                const T swept = of_row[j] - times(factor, conjugate(of_k[j]));
                of_row[j] = row == k ? j == k ? of_real(-1 / pivot) : conjugate(of_k[j]) * (1 / pivot) : j == k ? factor : swept;
            }
        }
    }
    // The sweeps by diagonal entries leave the negative of the inverse, so all signs are changed.
    for (ulong row = team; row < n; row += ${teams})
        for (ulong j = lane; j <= row; j += ${lanes}) {
            const T entry = -inverse[row * n + j];
            inverse[row * n + j] = entry;
            inverse[j * n + row] = conjugate(entry);
        }
% for measure, at in (("largest", 2), ("difference", 3)):
    barrier(CLK_LOCAL_MEM_FENCE);
    box[me] = ${measure};
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint other = 1; me == 0 && other < ${work_group}; ++other)
        ${measure} = fmax(${measure}, box[other]);
    if (me == 0)
        report[${at}] = ${measure};
% endfor
    if (me == 0) {
        report[0] = least_pivot;
        report[1] = largest_pivot;
    }
}
% endif
