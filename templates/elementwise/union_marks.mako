<%doc>
Count the results of an operator on two matrices that are not 0, entry by entry on the union of their patterns, tile by tile;
and mark what stands at each place of a tile, for union_write.mako. A matrix that has no entry at a position has 0 there.

Index space   a work-group to a tile; a work-item finds the order of `span` adjacent places: entries of A and of B, and row ends
Inputs        both matrices in canonical format; cuts, of union_cuts.mako
Output        marks: three numbers for each work-item, of 16 bits and 16 bits. Bit i of the first tells about its place i: 1,
              an entry of A; 1 in the upper half too, an entry of A with one of B in its column, which comes next; 1 in the
              upper half alone, a row's end; neither, an entry of B. The second: which places give results that are kept, and
              how many places of the tile before do. The third: how many entries of A, and of B, come before in the tile.
              counts[tile + 1]: how many results the tile keeps
Local memory  columns and row ends of the tile, a flag for each place, a number for each work-item
Result        exact: each result is made of one value of each matrix
</%doc>
#include "group_scan.cl"
#define SPAN ${span}
#define MAX_PLACES ${work_group * span}

uchar is_kept(const T a, const T b)
{
    const C_VALUE result = operate(a, b);
    return ${is_kept} ? 1 : 0;
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict cuts,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const B_VALUE *restrict b_values,
    global uint *restrict marks, global I *restrict counts)
{
    local I box[MAX_PLACES];
    local uchar flags[MAX_PLACES];
    local uint scan_box[${work_group}];
    const uint me = get_local_id(0);
    const ulong tile = get_group_id(0);
    const I first_row = cuts[3 * tile], first_a = cuts[3 * tile + 1], first_b = cuts[3 * tile + 2];
    const uint n_ends = (uint)(cuts[3 * tile + 3] - first_row);
    const uint n_a = (uint)(cuts[3 * tile + 4] - first_a), n_b = (uint)(cuts[3 * tile + 5] - first_b);
    const uint n_places = n_a + n_b + n_ends;

    // Columns of A, those of B, and how many entries of A, and 2^16 times of B, come before each row end. Flags tell which
    // entries give results that are kept if the other matrix has none in their places.
    local I *b_box = box + n_a, *ends = b_box + n_b;
    for (uint i = me; i < n_a; i += ${work_group}) {
        box[i] = a_indices[first_a + i];
        flags[i] = is_kept(from_a(a_values[first_a + i]), (T)(0));
    }
    for (uint i = me; i < n_b; i += ${work_group}) {
        b_box[i] = b_indices[first_b + i];
        flags[n_a + i] = is_kept((T)(0), from_b(b_values[first_b + i]));
    }
    for (uint i = me; i < n_ends; i += ${work_group})
        ends[i] = (I)((uint)(a_indptr[first_row + 1 + i] - first_a) | (uint)(b_indptr[first_row + 1 + i] - first_b) << 16);
    barrier(CLK_LOCAL_MEM_FENCE);

    // The row of the work-item's first place: as many row ends come before.
    const uint place = min(me * SPAN, n_places), here = min(n_places - place, (uint)SPAN);
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
    // How many entries of A and of B come before the place in its row.
    const uint diagonal = place - (a + b + row), b_length = b_end - b;
    uint of_a = diagonal > b_length ? diagonal - b_length : 0, most = min(diagonal, a_end - a);
    while (of_a < most) {
        const uint middle = (of_a + most) / 2;
        if (box[a + middle] <= b_box[b + diagonal - 1 - middle])
            of_a = middle + 1;
        else
            most = middle;
    }
    a += of_a;
    b += diagonal - of_a;
    const uint entries_before = a | b << 16;
    // An entry of B goes with the entry of A in its column, which the work-item before this one may have.
    bool is_taken = of_a > 0 && b < b_end && box[a - 1] == b_box[b];

    uint kind = 0, kept = 0;
    for (uint i = 0; i < here; ++i) {
        const bool more_of_a = a < a_end, more_of_b = b < b_end;
        const I of_a_here = more_of_a ? box[a] : I_MAX, of_b_here = more_of_b ? b_box[b] : I_MAX;
        const bool has_a = more_of_a && of_a_here <= of_b_here, has_b = !has_a && more_of_b, is_end = !more_of_a && !more_of_b;
        const bool is_pair = has_a && of_a_here == of_b_here;
        uint keep = 0;
        if (!is_end)
            keep = flags[has_a ? a : n_a + b];
        if (is_pair)
            keep = is_kept(from_a(a_values[first_a + a]), from_b(b_values[first_b + b]));
        kind |= ((has_a ? 1u : 0u) | (is_pair || is_end ? 0x10000u : 0u)) << i;
        kept |= (is_taken ? 0 : keep) << i;
        is_taken = is_pair;
        a += has_a;
        b += has_b;
        if (is_end) {
            ++row;
            end = row < n_ends ? (uint)ends[row] : n_a | n_b << 16;
            a_end = end & 0xffff;
            b_end = end >> 16;
        }
    }

    const uint before = group_scan_add(scan_box, popcount(kept));
    global uint *mine = marks + 3 * get_global_id(0);
    mine[0] = kind;
    mine[1] = kept | before << 16;
    mine[2] = entries_before;
    if (me == ${work_group - 1})
        counts[tile + 1] = (I)(before + popcount(kept));
}
