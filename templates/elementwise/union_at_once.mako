<%doc>
The results of an operator on two small matrices, entry by entry on the union of their patterns: one tile, whose places are marked
as in union_marks.mako and written as in union_write.mako.

Index space   one work-group; a work-item has the loads of `unroll` places in flight
Inputs        both matrices in canonical format, with a row at least; n_a, n_b: their entries. Rows and entries are `step`
              together at most
Output        indptr, of which the last number is how many results there are; indices and values, with room for n_a + n_b
Local memory  columns and row ends of the tile, four numbers for each work-item
Result        exact: each result is made of one value of each matrix
</%doc>
<%namespace name="marking" file="elementwise/union_marks"/>\
<%namespace name="writing" file="elementwise/union_write"/>\
#include "group_scan.cl"
#define SPAN ${span}
#define MAX_PLACES ${work_group * span}

${marking.whether_kept()}\

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_ends, const uint n_a, const uint n_b,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const B_VALUE *restrict b_values,
    global I *restrict indptr, global I *restrict indices, global C_VALUE *restrict values)
{
    local I box[MAX_PLACES];
    local uint scan_box[${work_group}], kind_of[${work_group}], result_bits_of[${work_group}], before_of[${work_group}];
    local uint is_unusual;
    const uint me = get_local_id(0);
    if (me == 0) {
        is_unusual = 0;
        indptr[0] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // The only tile of this kernel has all places (row ends and entries) of both matrices.
    const I first_row = 0, first_a = 0, first_b = 0, start = 0;
    const uint n_places = n_a + n_b + n_ends;

${marking.mark_places()}\
    kind_of[me] = kind_a | kind_upper << 16;
    result_bits_of[me] = result_bits | before << 16;
    before_of[me] = entries_before;
    barrier(CLK_LOCAL_MEM_FENCE);
${writing.write_places()}\
}
