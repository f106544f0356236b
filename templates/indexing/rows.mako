<%doc>
Gather the entries of some rows of a matrix, row by row. All work-groups have equal shares of rows + entries, however long rows
are, and each finds its own share by a search.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   a work-group for each `work_group * items` rows and entries of the result
Inputs        if `listed_type`, rows: n_rows indices of the matrix's n_positions rows, negative ones counted from the end, in any
              order, repeated or not; else row r is copied if it has entries in the result. starts: where each row begins in the
              result, and the end
Local memory  `work_group * items + 1` numbers of 16 bits, twice, as many of the index type, and two of 32 bits for each step of a
              search
Result        exact
</%doc>
<% tile = work_group * items %>\
#define SEARCHERS ${searchers}
#define SEARCH_STEPS ${steps}
#include "path_tile.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, global const I *restrict starts,
% if listed_type:
    const I n_positions, global const ${listed_type} *restrict rows,
% endif
    global const I *restrict indptr, global const I *restrict indices, global const V *restrict values,
    global I *restrict out_indices, global V *restrict out_values)
{
    local uint box[${2 * steps}], any_long;
    local ushort bounds[${tile + 2}], rows_before[${tile}];
    local I distances[${tile + 1}];
    const uint me = get_local_id(0);
    const ulong begin = (ulong)get_group_id(0) * ${tile}, end = min(begin + ${tile}, (ulong)starts[n_rows] + n_rows);
    I first, behind;
    path_rows(box, starts, n_rows, begin, end, &first, &behind);
    const I entry = (I)(begin - first);
    const uint n_heads = (uint)(behind - first), count = (uint)(end - begin) - n_heads;

    // distances[r]: the position in the matrix less the position in the result, the same for all entries of row r of the tile.
    for (uint r = me + (first ? 0 : 1); r <= n_heads; r += ${work_group}) {
        const I row = first + r - 1, start = starts[row], position = ${"rows[row]" if listed_type else "row"};
        distances[r] = indptr[position${" < 0 ? position + n_positions : position" if listed_type else ""}] - start;
        if (r)
            bounds[r] = (ushort)(start - entry);
    }
    if (me == 0) {
        bounds[0] = 0;
        bounds[n_heads + 1] = (ushort)count;
        any_long = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    path_spread(&any_long, bounds, n_heads, rows_before);

    // Positions, loads and stores of the entries of a work-item have a loop each, so that the loads are in flight together.
% for u in range(items):
    const bool active_${u} = me + ${u * work_group} < count;
    const I source_${u} = active_${u} ? entry + (me + ${u * work_group}) + distances[rows_before[me + ${u * work_group}]] : 0;
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
        out_indices[entry + (me + ${u * work_group})] = index_${u};
        out_values[entry + (me + ${u * work_group})] = value_${u};
    }
% endfor
}
