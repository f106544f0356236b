<%doc>
Entries that are marked, side by side. Phase "count": how many of each tile are. Phase "list": their positions or, if
these are fewer, those of the others. Phase "move": values of marked entries, `many` of them from marked entry `first` on. Phase
"rows": how many marked entries stand before each row.

Source        own
Index space   phases "count" and "list": a tile of entries to a work-item; others: work-items that stride over the results, or
              take adjacent ones: `spread` says which
Inputs        marks: 1 or 0; offsets: marked entries before each tile; there: whether positions, n_positions of them in
              ascending order, are those of marked entries
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
        I marked = 0;
        for (ulong k = begin; k < end; ++k)
            marked += marks[k];
        counts[tile] = marked;
    }
}
% elif phase == "list":
    const ulong n, const uint there, global const uchar *restrict marks, global const I *restrict offsets,
    global I *restrict positions)
{
    const ulong tile = get_global_id(0), begin = tile * ${tile}, end = min(n, begin + ${tile});
    if (begin < n) {
        I at = there ? offsets[tile] : (I)begin - offsets[tile];
        for (ulong k = begin; k < end; ++k)
            if (marks[k] == there)
                positions[at++] = (I)k;
    }
}
% elif phase == "move":
    const ulong many, const ulong stride, const ulong step, const ulong span, const ulong first, const uint there,
    const ulong n_positions, global const I *restrict positions, global const V *restrict values, global V *restrict moved)
{
    const ulong begin = get_global_id(0) * stride, end = min(many, begin + span);
    // Entries that are left out before this one: position i has positions[i] - i marked entries before it.
    ulong out = 0;
    for (ulong k = begin; k < end; k += step) {
        const ulong entry = first + k;
        if (there) {
            moved[k] = values[positions[entry]];
        } else {
            if (step == 1 && k > begin) {
                while (out < n_positions && (ulong)positions[out] - out <= entry)
                    ++out;
            } else {
                for (ulong high = n_positions; out < high;) {
                    const ulong middle = out + (high - out) / 2;
                    if ((ulong)positions[middle] - middle <= entry)
                        out = middle + 1;
                    else
                        high = middle;
                }
            }
            moved[k] = values[entry + out];
        }
    }
}
% else:
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint there, const ulong n_positions,
    global const I *restrict positions, global const I *restrict indptr, global I *restrict marked)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong row = begin; row < end; row += step) {
        const I at = indptr[row], before = first_from(positions, 0, (I)n_positions, at);
        marked[row] = there ? before : at - before;
    }
}
% endif
