<%doc>
Put the entries of a matrix into the rows of its transposed, in no particular order within a row. An entry is represented by a
pair: its row in the upper half of a ulong, its position in the lower. Pairs in ascending order are entries in order.

Source        the second step of SpTRANS: Ji et al., "Segmented merge", Section 4.2; ranks in place of its atomics
Index space   n_parts work-groups
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako with a row weighing 1, no part over `work_group * items`;
              ranks: of count.mako; transposed_ptr: where the rows of the transposed begin; fewer than 2^32 rows and entries
Local memory  `work_group * items + 1` numbers
Result        as deterministic as the ranks
</%doc>
#include "tile_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict indptr,
    global const I *restrict indices, global const uint *restrict ranks, global const I *restrict transposed_ptr,
    global ulong *restrict pairs)
{
    local uint starts[${work_group * items + 1}];
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
    const I begin = part_entry[part], first = tile_first_row(part_row[part], begin, indptr);
    const uint count = (uint)(part_entry[part + 1] - begin), n_rows = count ? (uint)(part_row[part + 1] - first) : 0;
    tile_stage_rows(starts, n_rows, first, begin, indptr);

    // Each step of the insertion is a loop of its own over a work-item's entries, so that their loads are in flight together.
% for u in range(items):
    const bool active_${u} = me + ${u * work_group} < count;
    const I k_${u} = begin + (active_${u} ? me + ${u * work_group} : 0);
    const I column_${u} = active_${u} ? indices[k_${u}] : 0;
    const uint rank_${u} = active_${u} ? ranks[k_${u}] : 0;
% endfor
% for u in range(items):
    const I to_${u} = transposed_ptr[column_${u}] + (I)rank_${u};
    const ulong row_${u} = (ulong)(first + tile_row(starts, n_rows, me + ${u * work_group}));
% endfor
% for u in range(items):
    if (active_${u})
        pairs[to_${u}] = row_${u} << 32 | (ulong)k_${u};
% endfor
}
