<%doc>
Have the entries of a sample another one in a column near theirs shortly before them? If few have, counting by column alone moves
each entry to a place that is in no cache.

Source        own
Index space   one work-item
Inputs        columns in any order; n is more than `window`
Output        report[0]: how many of `samples` entries have another one in a column at most `distance` away among the `window`
              entries before them
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
        // One entry of each of so many ranges, at random.
        const ulong k = ${window} + sample * range + (range ? sample * 2654435761ul % range : 0);
        const I column = indices[k];
        uint is_near = 0;
        for (ulong j = k - ${window}; j < k; ++j)
            is_near |= indices[j] + ${distance} >= column && indices[j] <= column + ${distance};
        near += is_near;
    }
    report[0] = near;
}
