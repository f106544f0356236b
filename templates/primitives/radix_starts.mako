<%doc>
Where the entries of each tile with each digit go among those with that digit, from how many there are: an exclusive scan over
the tiles of each digit, in place. The second part of a pass of a radix sort.

Source        Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs"; the scan over digits is
              left to who reads the totals, which are few
Index space   a work-group for each of `2 ** bits` digits
Inputs        counts[digit * n_tiles + tile], of radix_count
Output        behind the counts, how many entries have each digit
Local memory  a sum for each work-item
Result        exact
</%doc>
#include "${"group_scan_long.cl" if wide else "group_scan.cl"}"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n_tiles, global I *restrict counts)
{
    local ${"ulong" if wide else "uint"} box[${work_group}];
    const uint me = get_local_id(0);
    const ulong digit = get_group_id(0), span = (n_tiles + ${work_group - 1}) / ${work_group};
    const ulong begin = min(me * span, n_tiles), end = min(begin + span, n_tiles);
    global I *of_digit = counts + digit * n_tiles;
    I sum = 0;
    for (ulong tile = begin; tile < end; ++tile)
        sum += of_digit[tile];
    I before = (I)group_scan_${"add_long" if wide else "add"}(box, sum);
    if (me == ${work_group - 1})
        counts[(n_tiles << ${bits}) + digit] = before + sum;
    for (ulong tile = begin; tile < end; ++tile) {
        const I count = of_digit[tile];
        of_digit[tile] = before;
        before += count;
    }
}
