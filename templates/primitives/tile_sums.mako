<%doc>
The sum of each tile of ${tile} adjacent entries: the first half of a scan.

Source        reduce-then-scan: Dotsenko et al., "Fast scan algorithms on graphics processors"; Merrill and Grimshaw, "Parallel scan
              for stream architectures"
Index space   a work-group for each tile
Inputs        n entries; sums are in T, whatever their own type is
Local memory  work_group * sizeof(T)
Result        deterministic
</%doc>
#include "tile_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n, global const SOURCE *restrict source, global T *restrict sums)
{
    local T box[${work_group}];
    const uint me = get_local_id(0);
    const ulong begin = (ulong)get_group_id(0) * ${tile};
    const uint here = (uint)min(n - begin, (ulong)${tile});
    T sum = ZERO;
    if (here == ${tile}) {
        for (uint i = me; i < ${tile}; i += ${work_group})
            sum = ADD(sum, from_source(source[begin + i]));
    } else {
        for (uint i = me; i < here; i += ${work_group})
            sum = ADD(sum, from_source(source[begin + i]));
    }
    const T before = group_before(box, sum);
    if (me == ${work_group - 1})
        sums[get_group_id(0)] = ADD(before, sum);
}
