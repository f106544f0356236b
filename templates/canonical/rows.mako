<%doc>
The row of each entry of a CSR matrix; if `value_bytes`, with copies of columns and values. Work-groups have equal shares of
rows + entries, however long rows are, and find the beginning of their share by a search.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   a work-group for each `work_group * items` rows and entries
Inputs        a valid structure
Output        rows: of each entry; the copies
Local memory  `work_group * items + 1` numbers of 16 bits, twice, and two of 32 for each step of a search
Result        exact
</%doc>
<% tile = work_group * items %>\
#define SEARCHERS ${searchers}
#define SEARCH_STEPS ${steps}
#include "path_tile.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, global const I *restrict indptr, global I *restrict rows${", " if value_bytes else ")"}
% if value_bytes:
    global const I *restrict indices, global const V *restrict values, global I *restrict columns, global V *restrict copied)
% endif
{
    local uint box[${2 * steps}], any_long;
    local ushort bounds[${tile + 2}], rows_before[${tile}];
    const uint me = get_local_id(0);
    const ulong begin = (ulong)get_group_id(0) * ${tile}, end = min(begin + ${tile}, (ulong)indptr[n_rows] + n_rows);
    I first, behind;
    path_rows(box, indptr, n_rows, begin, end, &first, &behind);
    const I entry = (I)(begin - first);
    const uint n_heads = (uint)(behind - first), count = (uint)(end - begin) - n_heads;
    for (uint r = me; r < n_heads; r += ${work_group})
        bounds[r + 1] = (ushort)(indptr[first + r] - entry);
    if (me == 0) {
        bounds[0] = 0;
        bounds[n_heads + 1] = (ushort)count;
        any_long = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    path_spread(&any_long, bounds, n_heads, rows_before);
    for (uint k = me; k < count; k += ${work_group}) {
        rows[entry + k] = first + rows_before[k] - 1;
% if value_bytes:
        columns[entry + k] = indices[entry + k];
        copied[entry + k] = values[entry + k];
% endif
    }
}
