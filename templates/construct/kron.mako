<%doc>
The entries of the Kronecker product of two sparse matrices, row by row. Row (i, k) of the product has the entries of row i of A,
one after another, each times the entries of row k of B, so its beginning is known without a scan.

Index space   a work-group takes `tile` entries of the product side by side; its work-items take neighbours in turn
Inputs        valid structures, in any order, each with entries; all entries of the product can be numbered by I
Local memory  none
Result        sorted or canonical if A and B are; `coordinates`: the row of each entry too
</%doc>
#include "row_of.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong tile, const I a_rows, const I b_rows, const I b_columns,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const B_VALUE *restrict b_values,
% if coordinates:
    global I *restrict rows,
% endif
    global I *restrict columns, global T *restrict values)
{
    const ulong begin = get_group_id(0) * tile + get_local_id(0), end = min(n, get_group_id(0) * tile + tile);
    const I of_b = b_indptr[b_rows];
    I i = 0, k = 0, a_begin = 0, b_begin = 0, b_length = 1, row_begin = 0;
    ulong row_end = 0;
    for (ulong at = begin; at < end; at += ${work_group}) {
        const I p = (I)at;
        if (at >= row_end) {
            const I row = row_of(a_indptr, i, a_rows - 1, at == begin ? a_rows / 2 + 1 : 1, p / of_b);
            k = row == i ? k : 0;
            i = row;
            a_begin = a_indptr[i];
            const I a_length = a_indptr[i + 1] - a_begin, of_row = a_begin * of_b;
            k = row_of(b_indptr, k, b_rows - 1, at == begin ? b_rows / 2 + 1 : 1, (p - of_row) / a_length);
            b_begin = b_indptr[k];
            b_length = b_indptr[k + 1] - b_begin;
            row_begin = of_row + b_begin * a_length;
            row_end = (ulong)row_begin + (ulong)b_length * (ulong)a_length;
        }
        const I place = p - row_begin, turn = place / b_length;
        const I a_entry = a_begin + turn, b_entry = b_begin + (place - turn * b_length);
        columns[p] = a_indices[a_entry] * b_columns + b_indices[b_entry];
        values[p] = operate(from_a(a_values[a_entry]), from_b(b_values[b_entry]));
% if coordinates:
        rows[p] = i * b_rows + k;
% endif
    }
}
