<%doc>
Count the results of an operator on two matrices that are not 0, entry by entry on the union of their patterns, tile by tile;
and mark what stands at each place of a tile, for union_write.mako. A matrix that has no entry at a position has 0 there.

Index space   a work-group to a tile; a work-item finds the order of `span` adjacent places: entries of A and of B, and row ends
Inputs        both matrices in canonical format; cuts, of union_cuts.mako; `few`: with a row at least, and cuts is output
Output        marks: three numbers for each work-item, of 16 bits and 16 bits. Bit i of the first tells about its place i: 1,
              an entry of A; 1 in the upper half too, an entry of A with one of B in its column, which comes next; 1 in the
              upper half alone, a row's end; neither, an entry of B. The second: which places give results that are kept, and
              how many places of the tile before do. The third: how many entries of A, and of B, come before in the tile.
              counts[tile + 1]: how many results the tile keeps; `few`: counts and indptr have their first number, 0
Local memory  columns and row ends of the tile, a number for each work-item; `few`: six numbers
Result        exact: each result is made of one value of each matrix
</%doc>
#include "group_scan.cl"
#define SPAN ${span}
#define MAX_PLACES ${work_group * span}
% if few:
#include "union_cut.cl"
% endif

${whether_kept()}\

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if few:
    const I n_rows, const ulong n_places_of_all, global I *restrict cuts, global I *restrict indptr,
% else:
    global const I *restrict cuts,
% endif
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const B_VALUE *restrict b_values,
    global uint *restrict marks, global I *restrict counts)
{
    local I box[MAX_PLACES];
    local uint scan_box[${work_group}];
    local uint is_unusual;
    const uint me = get_local_id(0);
    const ulong tile = get_group_id(0);
% if few:
    local I cut[6];
    for (uint i = me; i < 2; i += ${work_group}) {
        const ulong place = min((tile + i) * ${step}, n_places_of_all);
        const I row = union_row(place, n_rows, a_indptr, b_indptr);
        const I a = union_a(place, row, n_rows, a_indptr, a_indices, b_indptr, b_indices);
        cut[3 * i] = row;
        cut[3 * i + 1] = a;
        cut[3 * i + 2] = union_b(place, row, a, n_rows, a_indptr, a_indices, b_indptr, b_indices);
        if (i == 0 || tile == get_num_groups(0) - 1)
            for (uint n = 0; n < 3; ++n)
                cuts[3 * (tile + i) + n] = cut[3 * i + n];
        if (tile + i == 0)
            counts[0] = indptr[0] = 0;
    }
% else:
    global const I *cut = cuts + 3 * tile;
% endif
    if (me == 0)
        is_unusual = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const I first_row = cut[0], first_a = cut[1], first_b = cut[2];
    const uint n_ends = (uint)(cut[3] - first_row), n_a = (uint)(cut[4] - first_a), n_b = (uint)(cut[5] - first_b);
    const uint n_places = n_a + n_b + n_ends;

${mark_places()}\
    global uint *mine = marks + 3 * get_global_id(0);
    mine[0] = kind_a | kind_upper << 16;
    mine[1] = result_bits | before << 16;
    mine[2] = entries_before;
    if (me == ${work_group - 1})
        counts[tile + 1] = (I)(before + popcount(result_bits));
}
<%def name="mark_places()">\
    // Local memory holds the tile's columns of A, the tile's columns of B, and a number for each row end of the tile.
    // The number of a row end is the count of the tile's entries of A before it, plus 2^16 times the count of entries of B.
    // Results of entries of one matrix alone are usually all kept, or none is; else each result is tested below.
    const uint usual = is_kept((T)(1), (T)(0));
    bool unusual = false;
    local I *b_box = box + n_a, *ends = b_box + n_b;
    for (uint i = me; i < n_a; i += ${work_group}) {
        box[i] = a_indices[first_a + i];
        unusual |= is_kept(from_a(a_values[first_a + i]), (T)(0)) != usual;
    }
    for (uint i = me; i < n_b; i += ${work_group}) {
        b_box[i] = b_indices[first_b + i];
        unusual |= is_kept((T)(0), from_b(b_values[first_b + i])) != usual;
    }
    if (unusual)
        atomic_or(&is_unusual, 1u);
    for (uint i = me; i < n_ends; i += ${work_group})
        ends[i] = (I)((uint)(a_indptr[first_row + 1 + i] - first_a) | (uint)(b_indptr[first_row + 1 + i] - first_b) << 16);
    barrier(CLK_LOCAL_MEM_FENCE);

    // `row` becomes the row of the work-item's first place: the number of row ends before the place.
    const uint place = min(me * SPAN, n_places), n_own = min(n_places - place, (uint)SPAN);
    uint row = 0, last = n_ends;
    while (row < last) {
        const uint middle = (row + last) / 2, end = (uint)ends[middle];
        if ((end & 0xffff) + (end >> 16) + middle < place)
            row = middle + 1;
        else
            last = middle;
    }
    const uint begin = row > 0 ? (uint)ends[row - 1] : 0;
    uint end = row < n_ends ? (uint)ends[row] : n_a | n_b << 16;
    uint a = begin & 0xffff, b = begin >> 16, a_end = end & 0xffff, b_end = end >> 16;
    // `of_a` becomes the number of A's entries before the work-item's first place in the row of that place.
    const uint diagonal = place - (a + b + row), b_length = b_end - b;
    uint of_a = diagonal > b_length ? diagonal - b_length : 0, high = min(diagonal, a_end - a);
    while (of_a < high) {
        const uint middle = (of_a + high) / 2;
        if (box[a + middle] <= b_box[b + diagonal - 1 - middle])
            of_a = middle + 1;
        else
            high = middle;
    }
    a += of_a;
    b += diagonal - of_a;
    const uint entries_before = a | b << 16;
    // The previous work-item may have an entry of A in the column of this work-item's first entry of B: both are one result.
    const bool is_taken = of_a > 0 && b < b_end && box[a - 1] == b_box[b];

    // next_a and next_b are the next columns of A and B in the row, I_MAX behind the row's end.
    // Equal next_a and next_b are a pair of entries or, if they are I_MAX, the end of the row.
    // The bits in kind_a and kind_upper of places behind the last place of the tile are cleared below.
    uint at_a = a, at_b = n_a + b, kind_a = 0, kind_upper = 0;
    b_end += n_a;
    I next_a = at_a < a_end ? box[at_a] : I_MAX, next_b = at_b < b_end ? box[at_b] : I_MAX;
    #pragma unroll
    for (uint i = 0; i < SPAN; ++i) {
        const bool is_equal = next_a == next_b, has_a = next_a <= next_b && next_a != I_MAX;
        kind_a |= has_a ? 1u << i : 0u;
        kind_upper |= is_equal ? 1u << i : 0u;
        if (is_equal && !has_a) {
            ++row;
            end = row < n_ends ? (uint)ends[row] : n_a | n_b << 16;
            a_end = end & 0xffff;
            b_end = n_a + (end >> 16);
            next_a = at_a < a_end ? box[at_a] : I_MAX;
            next_b = at_b < b_end ? box[at_b] : I_MAX;
        } else {
            at_a += has_a;
            at_b += !has_a;
            const uint at = has_a ? at_a : at_b, limit = has_a ? a_end : b_end;
            const I next = at < limit ? box[at] : I_MAX;
            next_a = has_a ? next : next_a;
            next_b = has_a ? next_b : next;
        }
    }
    const uint own_bits = (1u << n_own) - 1;
    kind_a &= own_bits;
    kind_upper &= own_bits;
    // An entry of B that follows an entry of A in the same column is part of the result of the entry of A.
    const uint pairs = kind_a & kind_upper, of_b = own_bits & ~(kind_a | kind_upper);
    const uint singles = (kind_a | of_b) & ~(pairs | pairs << 1 | is_taken);
    uint result_bits = usual ? singles : 0;
    if (is_unusual) {
        result_bits = 0;
        for (uint i = 0; i < n_own; ++i)
            if (singles >> i & 1) {
                const uint below = (1u << i) - 1;
                result_bits |= (kind_a >> i & 1 ? is_kept(from_a(a_values[first_a + a + popcount(kind_a & below)]), (T)(0))
                                         : is_kept((T)(0), from_b(b_values[first_b + b + popcount(of_b & below)]))) << i;
            }
    }
    for (uint remaining = pairs; remaining != 0; remaining &= remaining - 1) {
        const uint below = (remaining & -remaining) - 1;
        const T of_A = from_a(a_values[first_a + a + popcount(kind_a & below)]);
        const T of_B = from_b(b_values[first_b + b + popcount(of_b & below)]);
        result_bits |= is_kept(of_A, of_B) * (below + 1);
    }

    const uint before = group_scan_add(scan_box, popcount(result_bits));
</%def>\
<%def name="whether_kept()">\
uint is_kept(const T a, const T b)
{
    const C_VALUE result = operate(a, b);
    return ${is_kept} ? 1 : 0;
}
</%def>\
