<%doc>
A sparse matrix put into a larger one, in rows that have no other block: its entries and its row pointers.

Index space   work-items that stride over entries and row pointers, or take adjacent ones: `spread` says which
Inputs        a valid structure, in any order
Output        entries from `first_entry` on, with columns that are `column_begin` larger; indptr from `first_row` on
Local memory  none
Result        entries keep their order
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
    const ulong n_entries, const ulong n_pointers, const ulong first_entry, const ulong first_row, const I column_begin,
    global const I *restrict indptr, global const I *restrict indices, global const V *restrict values,
    global I *restrict block_indptr, global I *restrict block_indices, global V *restrict block_values)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    const ulong last = min(end, n_entries);
    ulong k = begin;
    // Several at a time, so that their loads are in flight together.
    for (; k + ${items - 1} * step < last; k += ${items} * step) {
% for u in range(items):
        const I index_${u} = indices[k + ${u} * step];
        const V value_${u} = values[k + ${u} * step];
% endfor
% for u in range(items):
        block_indices[first_entry + k + ${u} * step] = index_${u} + column_begin;
        block_values[first_entry + k + ${u} * step] = value_${u};
% endfor
    }
    for (; k < last; k += step) {
        block_indices[first_entry + k] = indices[k] + column_begin;
        block_values[first_entry + k] = values[k];
    }
    for (k = begin; k < min(end, n_pointers); k += step)
        block_indptr[first_row + k] = indptr[k] + (I)first_entry;
}
