<%doc>
The results of an operator on two matrices, entry by entry on the union of their patterns, where union_marks.mako found them.

Index space   a work-group to a tile; work-items take places `work_group` apart
Inputs        both matrices in canonical format; cuts, of union_cuts.mako; marks, of union_marks.mako; starts: how many
              results come before each tile
Output        indptr from its second number on, indices and values of the result
Local memory  three numbers for each work-item
Result        exact: each result is made of one value of each matrix
</%doc>
#define SPAN ${span}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict cuts, global const uint *restrict marks, global const I *restrict starts,
    global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indices, global const B_VALUE *restrict b_values,
    global I *restrict indptr, global I *restrict indices, global C_VALUE *restrict values)
{
    local uint kinds[${work_group}];
    local uint kept[${work_group}];
    local uint entries_before[${work_group}];
    const uint me = get_local_id(0);
    const ulong tile = get_group_id(0);
    const I first_row = cuts[3 * tile], first_a = cuts[3 * tile + 1], first_b = cuts[3 * tile + 2], start = starts[tile];
    const uint n_places = (uint)(cuts[3 * tile + 3] - first_row + cuts[3 * tile + 4] - first_a + cuts[3 * tile + 5] - first_b);
    global const uint *mine = marks + 3 * get_global_id(0);
    kinds[me] = mine[0];
    kept[me] = mine[1];
    entries_before[me] = mine[2];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint p = me; p < n_places; p += ${work_group}) {
        const uint item = p / SPAN, i = p - item * SPAN, below = (1u << i) - 1;
        const uint of_item = kinds[item], kept_of_item = kept[item], before = entries_before[item];
        const bool is_of_a = of_item >> i & 1, is_upper = of_item >> (16 + i) & 1;
        const uint a = (before & 0xffff) + popcount(of_item & below);
        const uint b = (before >> 16) + popcount(~(of_item | of_item >> 16) & below);
        const I to = start + (kept_of_item >> 16) + popcount(kept_of_item & below);
        if (is_upper && !is_of_a)
            indptr[first_row + 1 + (p - a - b)] = to;
        else if (kept_of_item >> i & 1) {
            const T of_a = is_of_a ? from_a(a_values[first_a + a]) : (T)(0);
            const T of_b = is_of_a && !is_upper ? (T)(0) : from_b(b_values[first_b + b]);
            indices[to] = is_of_a ? a_indices[first_a + a] : b_indices[first_b + b];
            values[to] = operate(of_a, of_b);
        }
    }
}
