<%doc>
The incomplete sparse approximate inverse of a matrix, in its own pattern: the product of a row of the inverse and the matrix is
a row of the identity, in the pattern of the row. The entries of a row of the inverse solve a small dense system: by elimination
above and below the diagonal, with partial pivoting.

Source        Anzt, Huckle, Bräckle and Dongarra, "Incomplete sparse approximate inverses for parallel preconditioning"
Index space   a work-group takes `span` adjacent rows, one after another; its work-items share the columns of the row's system
Inputs        indptr, indices, values: of n rows, canonical; rows of least up to most entries count
Output        inverse: the values of the inverse, in the rows that count; systems: most * (most + 1) entries to a work-group, in
              global memory; singular: 1 if a row's system is singular, else unchanged
Local memory  none. Of one work-item it is the plain kernel
Result        deterministic
</%doc>
<%def name="wait()">\
% if work_group > 1:
barrier(CLK_GLOBAL_MEM_FENCE);
% endif
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong span, const ulong least, const ulong most, global const I *restrict indptr,
    global const I *restrict indices, global const T *restrict values, global T *systems, global T *restrict inverse,
    global int *singular)
{
    const ulong me = get_local_id(0), first_row = get_group_id(0) * span, last_row = min(n, first_row + span);
    global T *const system = systems + get_group_id(0) * most * (most + 1);
    bool is_singular = false;
    for (ulong row = first_row; row < last_row; ++row) {
        const I begin = indptr[row];
        const ulong length = indptr[row + 1] - begin, size = length < least || length > most ? 0 : length, width = size + 1;
        // Row r of the system has the matrix's entries in the column of the row's entry r, and at the end the identity's.
        for (ulong c = me; c < size; c += ${work_group}) {
            const I other = indices[begin + c], last = indptr[other + 1];
            I at = indptr[other];
            for (ulong r = 0; r < size; ++r) {
                const I column = indices[begin + r];
                while (at < last && indices[at] < column)
                    ++at;
                system[r * width + c] = at < last && indices[at] == column ? values[at] : ZERO;
            }
            system[c * width + size] = of_real(other == (I)row ? 1 : 0);
        }
        ${wait()}\
        for (ulong k = 0; k < size; ++k) {
            // Each work-item looks for the pivot: the largest entry of column k on or below the diagonal.
            ulong pivot = k;
            R best = largest(system[k * width + k]);
            for (ulong r = k + 1; r < size; ++r) {
                const R other = largest(system[r * width + k]);
                if (other > best) {
                    best = other;
                    pivot = r;
                }
            }
            is_singular = is_singular || !(best > 0);
            ${wait()}\
            for (ulong c = k + me; c < width; c += ${work_group}) {
                const T entry = system[pivot * width + c];
                system[pivot * width + c] = system[k * width + c];
                system[k * width + c] = entry;
            }
            ${wait()}\
            const T under = system[k * width + k];
            for (ulong r = 0; r < size; ++r) {
                if (r == k)
                    continue;
                const T factor = quotient(system[r * width + k], under);
                for (ulong c = k + 1 + me; c < width; c += ${work_group})
                    system[r * width + c] -= times(factor, system[k * width + c]);
            }
            ${wait()}\
        }
        for (ulong r = me; r < size; r += ${work_group})
            inverse[begin + r] = quotient(system[r * width + size], system[r * width + r]);
        ${wait()}\
    }
    if (is_singular)
        atomic_or(singular, 1);
}
