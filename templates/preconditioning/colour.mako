<%doc>
A round of the colouring of a graph. A row without a colour takes one once all its neighbours of higher priority have theirs: the
smallest colour that no neighbour has. Priorities are hashes of row numbers, all different, so that any number of rounds makes
the same choices.

Source        Jones and Plassmann, "A parallel graph coloring heuristic"
Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        a valid structure of a symmetric pattern; before: the colour of each row, -1 if it has none yet
Output        after; state: its first number becomes 1 if a row has no colour yet, its second at least the number of colours
Local memory  none
Result        exact
</%doc>
// Each step of this hash can be undone, so that no two rows have the same priority.
ulong priority(const ulong row)
{
    ulong key = row * 0x9E3779B97F4A7C15ul;
    key = (key ^ (key >> 32)) * 0xD6E8FEB86659FD93ul;
    return key ^ (key >> 32);
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, global const I *restrict indptr,
    global const I *restrict indices, global const I *restrict before, global I *restrict after, volatile global int *state)
{
    const ulong begin = get_global_id(0) * stride, last = min(n, begin + span);
    for (ulong row = begin; row < last; row += step) {
        int colour = (int)before[row];
        if (colour < 0) {
            const I first = indptr[row], end = indptr[row + 1];
            const ulong own = priority(row);
            bool waits = false;
            for (I k = first; k < end && !waits; ++k) {
                const I other = indices[k];
                waits = before[other] < 0 && priority((ulong)other) > own;
            }
            for (int base = 0; !waits && colour < 0; base += 32) {
                uint used = 0;
                for (I k = first; k < end; ++k) {
                    const int shift = (int)before[indices[k]] - base;
                    if (shift >= 0 && shift < 32)
                        used |= 1u << shift;
                }
                // The lowest bit that is 0 is that of the smallest free colour.
                if (~used)
                    colour = base + (int)popcount(used & ~(used + 1u));
            }
            if (waits)
                atomic_or(state, 1);
            else if (colour >= state[1])
                atomic_max(state + 1, colour + 1);
        }
        after[row] = colour;
    }
}
