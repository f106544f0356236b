<%doc>
Some rows of a matrix, one behind the other: a gather of their entries. Every work-group takes as many rows and entries together
as any other, however long rows are, and finds by itself which these are.

Source        own; parts of equal rows + entries after Merrill and Garland, SC 2016, Section 3
Index space   a work-group for each `work_group * items` rows and entries of the result, or more
Inputs        rows: n_rows positions, in any order, repeated or not; starts: where each begins in the result, and the end
Local memory  `work_group * items + 1` numbers of 32 bits, and as many of the index type; a byte for each work-item
Result        exact
</%doc>
<% tile = work_group * items %>\
#include "tile_rows.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, global const I *restrict starts, global const I *restrict rows,
    global const I *restrict indptr, global const I *restrict indices, global const V *restrict values,
    global I *restrict out_indices, global V *restrict out_values)
{
    local uint tile_starts[${tile + 1}];
    local I distances[${tile + 1}];
    local uchar before[${work_group}];
    local uint found[3];
    const uint me = get_local_id(0);
    // Nothing is left for work-groups behind the last entry.
    if (me == 0)
        found[1] = found[2] = 0;
    // A row weighs 1, at its beginning, and so does each entry.
    const ulong target = (ulong)get_group_id(0) * ${tile}, target_end = min(target + ${tile}, (ulong)starts[n_rows] + n_rows);

    // The first row that begins at or after the target: in each step the work-items look at evenly spaced rows.
    I low = 0, high = n_rows;
% for _ in range(steps):
    {
        const ulong width = max(((ulong)(high - low) + ${work_group - 1}) / ${work_group}, (ulong)1);
        const ulong row = low + (me + 1) * width - 1;
        before[me] = row < (ulong)high && starts[row] + row < target;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me == 0 && !before[0])
            found[0] = 0;
        if (before[me] && (me == ${work_group - 1} || !before[me + 1]))
            found[0] = me + 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        low += (I)(found[0] * width);
        high = (I)min((ulong)high, low + width - 1);
    }
% endfor
    const I begin = low > 0 ? max((I)(target - low), starts[low - 1]) : 0, first = low - (begin < starts[low] ? 1 : 0);

    // Where the tile's rows begin in it, and how far before its place in the result an entry of each stands.
    for (uint r = me; r <= ${tile}; r += ${work_group}) {
        const I row = first + (I)r;
        if (row < n_rows && (ulong)starts[row] + row < target_end) {
            tile_starts[r] = (uint)(max(starts[row], begin) - begin);
            distances[r] = indptr[rows[row]] - starts[row];
            if (row + 1 == n_rows || (ulong)starts[row + 1] + row + 1 >= target_end) {
                found[1] = r + 1;
                found[2] = (uint)(min((I)(target_end - (row + 1)), starts[row + 1]) - begin);
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint n_tile_rows = found[1], count = found[2];

    // Step by step for all entries of a work-item, so that their loads are in flight together.
% for u in range(items):
    const bool active_${u} = me + ${u * work_group} < count;
    const I entry_${u} = begin + (me + ${u * work_group});
    const I source_${u} = active_${u} ? entry_${u} + distances[tile_row(tile_starts, n_tile_rows, me + ${u * work_group})] : 0;
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
