<%doc>
The transposed of a matrix of symmetric pattern: entry (row, column) of the result stands at (column, row) in A, and is
found by search. The result has A's own indptr and indices. out[k] is the value, or with `positions` the position in A, of the
result's entry k.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   n_parts work-groups; nothing is done where report[0] is 0
Inputs        a square matrix; part_row, part_entry: n_parts + 1 each, of partition.mako with a row weighing 1, no part over
              `work_group * items`
Output        report[1]: bit 0 is set where an entry has no mirror image, bit 1 where an entry's column is not above that of the
              entry before in its row, as the search takes for granted; with either bit out is not the transposed
Local memory  `work_group * items + 1` numbers
Result        exact
</%doc>
#include "mirror.cl"
#include "tile_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict part_row, global const I *restrict part_entry,
    global const I *restrict indptr, global const I *restrict indices,
% if not positions:
    global const V *restrict data,
% endif
    global uint *restrict report, global V *restrict out)
{
    local uint starts[${work_group * items + 1}];
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
    const I begin = part_entry[part], first = tile_first_row(part_row[part], begin, indptr);
    const uint count = report[0] ? (uint)(part_entry[part + 1] - begin) : 0;
    const uint n_rows = count ? (uint)(part_row[part + 1] - first) : 0;
    tile_stage_rows(starts, n_rows, first, begin, indptr);

    // Each step of the gather is a loop of its own over a work-item's entries, so that the entries' loads are in flight together.
% for u in range(items):
    const bool active_${u} = me + ${u * work_group} < count;
    const I column_${u} = active_${u} ? indices[begin + (me + ${u * work_group})] : 0;
% endfor
% for u in range(items):
    const I row_${u} = first + tile_row(starts, n_rows, me + ${u * work_group});
% endfor
% for u in range(items):
    I low_${u} = 0, high_${u} = 0, guess_${u} = 0;
    if (active_${u}) {
        const I entry = begin + (me + ${u * work_group}), before = entry - indptr[row_${u}];
        low_${u} = indptr[column_${u}];
        high_${u} = indptr[column_${u} + 1];
        guess_${u} = mirror_guess(low_${u}, high_${u}, before);
        if (before > 0 && indices[entry - 1] >= column_${u})
            atomic_or(report + 1, 2);
    }
% endfor
% for u in range(items):
    const I place_${u} = mirror_search(indices, low_${u}, high_${u}, guess_${u}, row_${u});
% endfor
% for u in range(items):
    if (active_${u}) {
        if (place_${u} < 0)
            atomic_or(report + 1, 1);
        else
            out[begin + (me + ${u * work_group})] = ${f"place_{u}" if positions else f"data[place_{u}]"};
    }
% endfor
}
