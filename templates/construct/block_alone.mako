<%doc>
One or two sparse matrices put into a larger one, one below the other, in rows that have no other block: entries and row pointers.

Index space   work-items that stride over entries and row pointers, or take adjacent ones: `spread` says which
Inputs        valid structures, in any order: a with n_a entries in rows_a rows, and b; if there is no b, n_a and rows_a are those
              of both
Output        entries from `first_entry` on, with columns that are `a_column` and `b_column` larger; indptr from `first_row` on
Local memory  none
Result        entries keep their order
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    const ulong n_entries, const ulong n_pointers, const ulong n_a, const ulong rows_a,
    const ulong first_entry, const ulong first_row, const I a_column, const I b_column,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const V *restrict a_values,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const V *restrict b_values,
    global I *restrict block_indptr, global I *restrict block_indices, global V *restrict block_values)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    const ulong last = min(end, n_entries);
    ulong k = begin;
% for block, behind, at in (("a", "min(last, n_a)", "k"), ("b", "last", "k - n_a")):
    // A turn of this loop copies ${items} entries of a block, so that the entries' loads are in flight together.
    for (; k + ${items - 1} * step < ${behind}; k += ${items} * step) {
% for u in range(items):
        const I index_${u} = ${block}_indices[${at} + ${u} * step];
        const V value_${u} = ${block}_values[${at} + ${u} * step];
% endfor
% for u in range(items):
        block_indices[first_entry + k + ${u} * step] = index_${u} + ${block}_column;
        block_values[first_entry + k + ${u} * step] = value_${u};
% endfor
    }
    for (; k < ${behind}; k += step) {
        block_indices[first_entry + k] = ${block}_indices[${at}] + ${block}_column;
        block_values[first_entry + k] = ${block}_values[${at}];
    }
% endfor
    for (k = begin; k < min(end, n_pointers); k += step)
        block_indptr[first_row + k] = (k <= rows_a ? a_indptr[k] : b_indptr[k - rows_a] + (I)n_a) + (I)first_entry;
}
