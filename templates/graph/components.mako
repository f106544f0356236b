<%doc>
Connected components by trees whose roots are linked: phase "start": each vertex is a tree; phase "link": of each entry the roots
of both vertices are joined, the larger below the smaller; phase "label": each vertex has its root, the smallest vertex of its
component.

Source        Jaiganesh and Burtscher, A High-Performance Connected Components Implementation for GPUs (ECL-CC)
Index space   work-items that stride over the vertices, of phase "link" over the entries: `spread` says which
Inputs        rows and columns of the entries of a square matrix; parents: n numbers; no more than int32 holds
Output        phase "label": roots, and a byte for each vertex: whether the vertex is a root
Local memory  none
Result        exact: trees differ from run to run, roots do not
</%doc>
% if phase == "link":
int load(volatile global int *parents, const int v) { return atomic_add(parents + v, 0); }

// Return the root of the tree that has the vertex v, and link vertices on the path to an ancestor nearer to the root.
int root_of(volatile global int *parents, int v)
{
    for (int above = load(parents, v); above != v;) {
        const int next = load(parents, above);
        if (next != above)
            atomic_min(parents + v, next);
        v = above;
        above = next;
    }
    return v;
}
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
% if phase == "link":
    global const I *restrict rows, global const I *restrict columns, volatile global int *restrict parents)
% elif phase == "label":
    global const int *restrict parents, global int *restrict roots, global uchar *restrict marks)
% else:
    global int *restrict parents)
% endif
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step) {
% if phase == "start":
        parents[i] = (int)i;
% elif phase == "link":
        int a = root_of(parents, (int)rows[i]), b = root_of(parents, (int)columns[i]);
        while (a != b) {
            const int high = max(a, b), low = min(a, b), previous = atomic_cmpxchg(parents + high, high, low);
            // Another work-item may have linked the root `high` to another vertex in the meantime.
            a = previous == high ? low : root_of(parents, previous);
            b = previous == high ? low : root_of(parents, low);
        }
% else:
        int root = (int)i;
        while (parents[root] != root)
            root = parents[root];
        roots[i] = root;
        marks[i] = root == (int)i;
% endif
    }
}
