<%doc>
Put the pairs (row, position) of each row of a transposed matrix, which insert.mako left in any order, in ascending order, and
write what the pairs stand for: rows, and values or `positions`. A pair's place is the number of smaller pairs in its row: rows
must be short.

Source        own; the third step of SpTRANS (Ji et al., "Segmented merge", Section 4.2) for short rows
Index space   n_parts work-groups
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako for indptr with a row weighing 1 and a slack that cuts no
              row, no part over `work_group * items`; pairs: all of a row differ
Local memory  `work_group * items` pairs and `work_group * items + 1` numbers
Result        deterministic
</%doc>
#include "tile_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict indptr,
    global const ulong *restrict pairs,
% if not positions:
    global const V *restrict data,
% endif
    global I *restrict rows, global V *restrict out)
{
    local ulong staged[${work_group * items}];
    local uint starts[${work_group * items + 1}];
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
    const I begin = part_entry[part], first = part_row[part];
    const uint count = (uint)(part_entry[part + 1] - begin), n_rows = (uint)(part_row[part + 1] - first);
% for u in range(items):
    const ulong pair_${u} = me + ${u * work_group} < count ? pairs[begin + (me + ${u * work_group})] : 0;
    staged[me + ${u * work_group}] = pair_${u};
% endfor
    tile_stage_rows(starts, n_rows, first, begin, indptr);
% for u in range(items):
    uint to_${u} = me + ${u * work_group};
    if (to_${u} < count) {
        const uint row = tile_row(starts, n_rows, to_${u});
        const uint row_begin = starts[row], row_end = row + 1 < n_rows ? starts[row + 1] : count;
        to_${u} = row_begin;
        for (uint other = row_begin; other < row_end; ++other)
            to_${u} += staged[other] < pair_${u};
    }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for u in range(items):
    staged[to_${u}] = pair_${u};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for u in range(items):
    if (me + ${u * work_group} < count) {
        const ulong sorted = staged[me + ${u * work_group}];
        rows[begin + (me + ${u * work_group})] = (I)(sorted >> 32);
        out[begin + (me + ${u * work_group})] = ${"(I)(sorted & 0xffffffff)" if positions else "data[sorted & 0xffffffff]"};
    }
% endfor
}
