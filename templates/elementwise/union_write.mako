<%doc>
The results of an operator on two matrices, entry by entry on the union of their patterns, where union_marks.mako found them.

Index space   a work-group to a tile; work-items take places `work_group` apart
Inputs        both matrices in canonical format; cuts, of union_cuts.mako; marks, of union_marks.mako; starts: how many
              results come before each tile; `few`: how many each tile keeps, behind a zero, of which there are few
Output        indptr from its second number on, indices and values of the result
Local memory  three numbers for each work-item; `few`: and another
Result        exact: each result is made of one value of each matrix
</%doc>
#define SPAN ${span}
% if few:
#include "group_scan.cl"
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict cuts, global const uint *restrict marks, global const I *restrict starts,
    global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indices, global const B_VALUE *restrict b_values,
    global I *restrict indptr, global I *restrict indices, global C_VALUE *restrict values)
{
    local uint kind_of[${work_group}];
    local uint result_bits_of[${work_group}];
    local uint before_of[${work_group}];
    const uint me = get_local_id(0);
    const ulong tile = get_group_id(0);
    const I first_row = cuts[3 * tile], first_a = cuts[3 * tile + 1], first_b = cuts[3 * tile + 2];
    const uint n_places = (uint)(cuts[3 * tile + 3] - first_row + cuts[3 * tile + 4] - first_a + cuts[3 * tile + 5] - first_b);
    global const uint *mine = marks + 3 * get_global_id(0);
    kind_of[me] = mine[0];
    result_bits_of[me] = mine[1];
    before_of[me] = mine[2];
% if few:
    local uint scan_box[${work_group}];
    local uint sum;
    uint of_tiles = 0;
    for (ulong i = me; i <= tile; i += ${work_group})
        of_tiles += (uint)starts[i];
    const uint of_others = group_scan_add(scan_box, of_tiles);
    if (me == ${work_group - 1})
        sum = of_others + of_tiles;
% endif
    barrier(CLK_LOCAL_MEM_FENCE);
    const I start = ${"(I)sum" if few else "starts[tile]"};
${write_places()}\
}
<%def name="write_places()">\
    // All loads of `unroll` places of a tile are in flight before a loaded value is used.
    for (uint p = me; p < n_places; p += ${unroll * work_group}) {
% for u in range(unroll):
        const uint at_${u} = min(p + ${u * work_group}, n_places - 1), item_${u} = at_${u} / SPAN, i_${u} = at_${u} - item_${u} * SPAN;
        const uint kind_${u} = kind_of[item_${u}], kept_${u} = result_bits_of[item_${u}], before_${u} = before_of[item_${u}];
        const uint below_${u} = (1u << i_${u}) - 1;
        const bool is_of_a_${u} = kind_${u} >> i_${u} & 1, is_upper_${u} = kind_${u} >> (16 + i_${u}) & 1;
        const bool is_here_${u} = p + ${u * work_group} < n_places, is_kept_${u} = is_here_${u} && (kept_${u} >> i_${u} & 1);
        const uint a_${u} = (before_${u} & 0xffff) + popcount(kind_${u} & below_${u});
        const uint b_${u} = (before_${u} >> 16) + popcount(~(kind_${u} | kind_${u} >> 16) & below_${u});
        const T a_value_${u} = is_kept_${u} && is_of_a_${u} ? from_a(a_values[first_a + a_${u}]) : (T)(0);
        const T b_value_${u} = is_kept_${u} && (!is_of_a_${u} || is_upper_${u}) ? from_b(b_values[first_b + b_${u}]) : (T)(0);
        const I column_${u} = !is_kept_${u} ? 0 : is_of_a_${u} ? a_indices[first_a + a_${u}] : b_indices[first_b + b_${u}];
% endfor
% for u in range(unroll):
        const I to_${u} = start + (kept_${u} >> 16) + popcount(kept_${u} & below_${u});
        if (is_kept_${u}) {
            indices[to_${u}] = column_${u};
            values[to_${u}] = operate(a_value_${u}, b_value_${u});
        } else if (is_here_${u} && is_upper_${u} && !is_of_a_${u})
            indptr[first_row + 1 + (at_${u} - a_${u} - b_${u})] = to_${u};
% endfor
    }
</%def>\
