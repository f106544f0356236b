<%doc>
Compact the marked entries. Phase "count": marked entries per tile. Phase "list": the positions of the marked entries or, if
fewer, of the unmarked ones. Phase "move": the values of n_results marked entries, from marked entry `first` on. Phase "rows":
the number of marked entries before each row.

Source        own
Index space   phases "count" and "list": a tile of entries to a work-item; others: work-items that stride over the results, or
              take adjacent ones: `spread` says which
Inputs        marks: 1 or 0; offsets: marked entries before each tile; positions: n_positions, ascending; lists_marked: 1 if they
              are those of the marked entries, 0 if of the unmarked ones
Local memory  none
Result        exact
</%doc>
% if phase == "rows":
#include "first_from.cl"

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if phase == "count":
    const ulong n, global const uchar *restrict marks, global I *restrict counts)
{
    const ulong tile = get_global_id(0), begin = tile * ${tile}, end = min(n, begin + ${tile});
    if (begin < n) {
        I n_marked = 0;
        for (ulong k = begin; k < end; ++k)
            n_marked += marks[k];
        counts[tile] = n_marked;
    }
}
% elif phase == "list":
    const ulong n, const uint lists_marked, global const uchar *restrict marks, global const I *restrict offsets,
    global I *restrict positions)
{
    const ulong tile = get_global_id(0), begin = tile * ${tile}, end = min(n, begin + ${tile});
    if (begin < n) {
        I at = lists_marked ? offsets[tile] : (I)begin - offsets[tile];
        for (ulong k = begin; k < end; ++k)
            if (marks[k] == lists_marked)
                positions[at++] = (I)k;
    }
}
% elif phase == "move":
    const ulong n_results, const ulong stride, const ulong step, const ulong span, const ulong first, const uint lists_marked,
    const ulong n_positions, global const I *restrict positions, global const V *restrict values, global V *restrict out_values)
{
    const ulong begin = get_global_id(0) * stride, end = min(n_results, begin + span);
    // Number of unmarked entries before the current marked one: positions[i] - i marked entries stand before unmarked entry i.
    ulong n_left_out = 0;
    for (ulong k = begin; k < end; k += step) {
        const ulong entry = first + k;
        if (lists_marked) {
            out_values[k] = values[positions[entry]];
        } else {
            if (step == 1 && k > begin) {
                while (n_left_out < n_positions && (ulong)positions[n_left_out] - n_left_out <= entry)
                    ++n_left_out;
            } else {
                for (ulong high = n_positions; n_left_out < high;) {
                    const ulong middle = n_left_out + (high - n_left_out) / 2;
                    if ((ulong)positions[middle] - middle <= entry)
                        n_left_out = middle + 1;
                    else
                        high = middle;
                }
            }
            out_values[k] = values[entry + n_left_out];
        }
    }
}
% else:
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint lists_marked, const ulong n_positions,
    global const I *restrict positions, global const I *restrict indptr, global I *restrict n_marked)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong row = begin; row < end; row += step) {
        const I at = indptr[row], before = first_from(positions, 0, (I)n_positions, at);
        n_marked[row] = lists_marked ? before : at - before;
    }
}
% endif
