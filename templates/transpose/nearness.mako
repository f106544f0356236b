<%doc>
The locality of columns, from a sample of entries: has an entry a predecessor, shortly before it, in a nearby column? If few have,
a counting sort by column writes each entry to a line that is in no cache.

Source        own
Index space   one work-item
Inputs        columns in any order; n is more than `window`
Output        report[0]: the number of sampled entries, of `samples`, that have an entry in a column at most `distance` away among
              the `window` entries before
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n, global const I *restrict indices, global uint *restrict report)
{
    if (get_global_id(0))
        return;
    const ulong range = (n - ${window}) / ${samples};
    uint near = 0;
    for (ulong sample = 0; sample < ${samples}; ++sample) {
        // Each sampled entry is chosen pseudo-randomly from one of `samples` equal ranges of the matrix's entries.
        const ulong k = ${window} + sample * range + (range ? sample * 2654435761ul % range : 0);
        const I column = indices[k];
        uint is_near = 0;
        for (ulong j = k - ${window}; j < k; ++j)
            is_near |= indices[j] + ${distance} >= column && indices[j] <= column + ${distance};
        near += is_near;
    }
    report[0] = near;
}
