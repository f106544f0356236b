<%doc>
For each entry of A in a slice of rows: where it stands, its row in the slice, and how many products it has: the length of the row
of B that its column names. `pointers`: also where the entries of each row begin.

Source        Dalton, Olson and Bell, Section 3.2: the work of expansion is laid out over the entries of A
Index space   a work-item to an entry of the slice
Inputs        entries_before: a scan of the lengths of all rows, none of which is empty; the slice has n_rows of them from
              `begin` on
Output        entry_at, entry_slot, lengths[n_entries]; `pointers`: row_entries[n_rows + 1]
Local memory  none
Result        exact
</%doc>
#include "spgemm_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPGEMM_ROWS const ulong begin, const ulong n_entries, global const ulong *restrict entries_before,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const I *restrict b_indptr,
    global I *restrict entry_at, global uint *restrict entry_slot, global int *restrict lengths\
% if pointers:
,
    global int *restrict row_entries)
% else:
)
% endif
{
    const ulong entry = get_global_id(0);
    if (entry >= n_entries)
        return;
    const ulong base = entries_before[begin], place = base + entry;
    ulong slot = begin;
    for (ulong above = begin + n_rows; slot + 1 < above;) {
        const ulong middle = (slot + above) / 2;
        if (entries_before[middle] <= place)
            slot = middle;
        else
            above = middle;
    }
    const ulong in_row = place - entries_before[slot];
    const I at = a_indptr[SPGEMM_ROW(slot)] + (I)in_row, k = a_indices[at];
    entry_at[entry] = at;
    entry_slot[entry] = (uint)(slot - begin);
    lengths[entry] = (int)(b_indptr[k + 1] - b_indptr[k]);
% if pointers:
    if (in_row == 0)
        row_entries[slot - begin] = (int)entry;
    if (entry + 1 == n_entries)
        row_entries[n_rows] = (int)n_entries;
% endif
}
