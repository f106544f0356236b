<%doc>
The inverse of a Hermitian positive definite matrix, as a dense one: its lower triangle is swept by each diagonal entry, and
mirrored.

Source        Goodnight, "A tutorial on the SWEEP operator"
Index space   one work-item
Inputs        a structure in canonical format, of n rows; column: room for n entries
Output        inverse: n x n, row by row; told: the least and the largest pivot, the largest entry of the matrix and of what it
              differs by from its conjugate transpose. The inverse counts if the least pivot is well above 0
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global T *restrict inverse, global T *restrict column, global R *restrict told)
{
    R least = INFINITY, most = 0, largest = 0, difference = 0;
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
        // No number is less than the least one any more.
        least = pivot > 0 ? fmin(least, pivot) : -INFINITY;
        most = fmax(most, pivot);
        if (!(least > 0))
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
    // The sweeps leave the inverse with the other sign.
    for (ulong row = 0; row < n; ++row)
        for (ulong j = 0; j <= row; ++j) {
            const T entry = -inverse[row * n + j];
            inverse[row * n + j] = entry;
            inverse[j * n + row] = conjugate(entry);
        }
    told[0] = least;
    told[1] = most;
    told[2] = largest;
    told[3] = difference;
}
