<%doc>
Some rows of a matrix, one behind the other: a gather of their entries. Every work-group moves as many entries as any other,
however long rows are.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   n_parts work-groups
Inputs        rows: positions, in any order, repeated or not; starts: where each begins in the result; part_row, part_entry:
              n_parts + 1 each, of partition.mako on starts with a row weighing 1, no part over `work_group * items`
Local memory  `work_group * items + 1` numbers of 32 bits, and as many of the index type
Result        exact
</%doc>
#include "tile_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict starts,
    global const I *restrict rows, global const I *restrict indptr, global const I *restrict indices,
    global const V *restrict values, global I *restrict out_indices, global V *restrict out_values)
{
    local uint tile_starts[${work_group * items + 1}];
    local I distances[${work_group * items + 1}];
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
    const I begin = part_entry[part], first = tile_first_row(part_row[part], begin, starts);
    const uint count = (uint)(part_entry[part + 1] - begin);
    const uint n_rows = count ? (uint)(part_row[part + 1] - first) : 0;
    // How far before its place in the result an entry of each row stands.
    for (uint r = me; r < n_rows; r += ${work_group})
        distances[r] = indptr[rows[first + r]] - starts[first + r];
    tile_stage_rows(tile_starts, n_rows, first, begin, starts);

    // Step by step for all entries of a work-item, so that their loads are in flight together.
% for u in range(items):
    const bool active_${u} = me + ${u * work_group} < count;
    const I entry_${u} = begin + (me + ${u * work_group});
    const I source_${u} = active_${u} ? entry_${u} + distances[tile_row(tile_starts, n_rows, me + ${u * work_group})] : 0;
% endfor
% for u in range(items):
    I index_${u};
    V value_${u};
    if (active_${u}) {
        index_${u} = indices[source_${u}];
        value_${u} = values[source_${u}];
    }
% endfor
% for u in range(items):
    if (active_${u}) {
        out_indices[entry_${u}] = index_${u};
        out_values[entry_${u}] = value_${u};
    }
% endfor
}
