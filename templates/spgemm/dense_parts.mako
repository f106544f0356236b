<%doc>
Rows of C whose parts were counted: how many entries each row has, and how many of them lie before each part.

Source        own
Index space   a work-item to a row
Inputs        parts: the entries of n_parts parts of each row, by slot; they become those of the parts before
Local memory  none
Result        exact
</%doc>
#include "spgemm_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_ROWS const uint n_parts, global uint *restrict parts, global uint *restrict counts)
{
    const ulong slot = get_global_id(0);
    if (slot >= n_rows)
        return;
    uint sum = 0;
    for (ulong i = slot * n_parts; i < (slot + 1) * n_parts; ++i) {
        const uint count = parts[i];
        parts[i] = sum;
        sum += count;
    }
    counts[SPGEMM_ROW(slot)] = sum;
}
