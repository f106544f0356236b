<%doc>
The places of the entries of each tile with each digit among all entries with that digit, from their counts: an exclusive scan
over the tiles of each digit, in place. The second part of a pass of a radix sort.

Source        Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs"; radix_scatter.mako scans the
              totals of digits, which are few
Index space   a work-group for each of `2 ** bits` digits
Inputs        counts[digit * n_tiles + tile], of radix_count
Output        behind the counts, the number of entries with each digit
Local memory  a sum for each work-item, and one more
Result        exact
</%doc>
#include "${"group_scan_long.cl" if wide else "group_scan.cl"}"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const ulong n_tiles, global I *restrict counts)
{
    local ${"ulong" if wide else "uint"} box[${work_group}];
    local I sum_so_far;
    const uint me = get_local_id(0);
    const ulong digit = get_group_id(0);
    global I *of_digit = counts + digit * n_tiles;
    I before = 0;
    // Adjacent work-items read adjacent digit counts: a step of the loop takes `work_group * items` counts.
    for (ulong first = 0; first < n_tiles; first += ${work_group * items}) {
        const ulong mine = first + me * ${items};
% for i in range(items):
        const I count_${i} = mine + ${i} < n_tiles ? of_digit[mine + ${i}] : 0;
% endfor
        const I sum = ${" + ".join(f"count_{i}" for i in range(items))};
        before += (I)group_scan_${"add_long" if wide else "add"}(box, sum);
        if (me == ${work_group - 1})
            sum_so_far = before + sum;
% for i in range(items):
        if (mine + ${i} < n_tiles)
            of_digit[mine + ${i}] = before;
        before += count_${i};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        before = sum_so_far;
    }
    if (me == 0)
        counts[(n_tiles << ${bits}) + digit] = before;
}
