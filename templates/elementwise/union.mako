<%doc>
Apply an operator to two matrices entry by entry, on the union of their patterns: a matrix that has no entry at a position has 0
there. Results that are 0 are left out. Phase "count": how many results each work-item keeps; phase "fill": the results, once it
is known where those of each work-item go.

Source        the merge path of two sorted lists, as in union_cuts.mako
Index space   a work-item for span adjacent places of that order, of which there are n_places, at least one: entries of A and of
              B, and rows
Inputs        both matrices in canonical format, of the same shape; "fill": starts, the exclusive scan of the counts
Output        "count": counts, a number for each work-item; "fill": indptr from its second number on, indices and values of C
Local memory  none
Result        exact: each result is made of one value of each matrix
</%doc>
<%
    fill = phase == "fill"
%>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const ulong n_places, const ulong span,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const B_VALUE *restrict b_values,
% if fill:
    global const I *restrict starts,
    global I *restrict indptr, global I *restrict indices, global C_VALUE *restrict values)
% else:
    global I *restrict counts)
% endif
{
    ulong place = get_global_id(0) * span;
    const ulong end = min(place + span, n_places);
    // The row of the first place: the last one that begins at or before it. Each row end takes a place, so that no two rows begin
    // at the same one.
    I row = 0, after = n_rows;
    while (after - row > 1) {
        const I middle = row + (after - row) / 2;
        if ((ulong)a_indptr[middle] + b_indptr[middle] + middle <= place)
            row = middle;
        else
            after = middle;
    }
    I a = a_indptr[row], a_end = a_indptr[row + 1], b = b_indptr[row], b_end = b_indptr[row + 1];

    // How many entries of A and of B come before it in its row.
    const I diagonal = (I)(place - ((ulong)a + b + row));
    I of_a = max(diagonal - (b_end - b), (I)0), most = min(diagonal, a_end - a);
    while (of_a < most) {
        const I middle = of_a + (most - of_a) / 2;
        if (a_indices[a + middle] <= b_indices[b + diagonal - 1 - middle])
            of_a = middle + 1;
        else
            most = middle;
    }
    a += of_a;
    b += diagonal - of_a;
    // An entry of B goes with the entry of A in its column, which the work-item before this one may have.
    const bool is_taken = of_a > 0 && b < b_end && a_indices[a - 1] == b_indices[b];
    if (is_taken) {
        ++b;
        ++place;
    }

    I kept = ${"starts[get_global_id(0)]" if fill else "0"};
    while (place < end) {
        const bool more_of_a = a < a_end, more_of_b = b < b_end;
        if (!more_of_a && !more_of_b) {
            ++row;
            ++place;
% if fill:
            indptr[row] = kept;
% endif
            if (row < n_rows) {
                a_end = a_indptr[row + 1];
                b_end = b_indptr[row + 1];
            }
            continue;
        }
        const I of_a_here = more_of_a ? a_indices[a] : I_MAX, of_b_here = more_of_b ? b_indices[b] : I_MAX;
        const bool has_a = of_a_here <= of_b_here, has_b = of_b_here <= of_a_here;
        const C_VALUE result = operate(has_a ? from_a(a_values[a]) : (T)(0), has_b ? from_b(b_values[b]) : (T)(0));
        if (${is_kept}) {
% if fill:
            indices[kept] = min(of_a_here, of_b_here);
            values[kept] = result;
% endif
            ++kept;
        }
        a += has_a;
        b += has_b;
        place += (ulong)has_a + has_b;
    }
% if not fill:
    counts[get_global_id(0)] = kept;
% endif
}
