<%doc>
A step of breadth-first search: an unseen vertex with a neighbour that was seen in the step before is seen now. Each unseen vertex
tests its neighbours in their order, and stops at the first hit.

Source        bottom-up step of Beamer, Asanovic and Patterson, Direction-Optimizing Breadth-First Search
Index space   work-items that stride over the vertices, or take adjacent ones: `spread` says which
Inputs        the vertices that lead to each vertex; seen_before: a byte for each vertex, whether the last step has seen it;
              levels: -1 for unseen vertices; first: whether this launch is the step's first one; number: the step's
Output        levels, parents; seen: the bytes of this step; new_flags[place]: 1 if the step has seen new vertices
Local memory  none
Result        exact: the parent is the first in the order of the vertex's entries
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const int number, const uint first, const uint place,
    global const I *restrict indptr, global const I *restrict indices, global const uchar *restrict seen_before,
    global int *restrict levels, global int *restrict parents, global uchar *restrict seen, global uint *restrict new_flags)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    bool any_new = false;
    for (ulong v = begin; v < end; v += step) {
        bool is_new = false;
        if (levels[v] < 0) {
            const I stop = indptr[v + 1];
            for (I k = indptr[v]; k < stop && !is_new; ++k)
                if (seen_before[indices[k]]) {
                    is_new = true;
                    levels[v] = number;
                    parents[v] = (int)indices[k];
                }
        }
        if (first || is_new)
            seen[v] = is_new;
        any_new |= is_new;
    }
    if (any_new)
        atomic_or((volatile global uint *)new_flags + place, 1u);
}
