<%doc>
Apply an operator to two matrices entry by entry, on the union of their patterns: a matrix that has no entry at a position has 0
there. Results that are 0 are left out. Phase "count": how many results each work-item keeps; phase "fill": the results, once it
is known where those of each work-item go.

Source        the merge path of two sorted lists (Green, McColl and Bader, "GPU merge path"; Odeh et al., "Merge path - parallel
              merging made simple"), row by row: the entries of a row of A and of B in the order of their columns, A's first of
              equal ones, then the row's end
Index space   a work-item for span adjacent places of that order, of which there are n_places, at least one: entries of A and of
              B, and rows
Inputs        both matrices in canonical format, of the same shape; "fill": starts, the exclusive scan of the counts
Output        "count": counts, a number for each work-item; "fill": indptr from its second number on, indices and values of C
Local memory  if `staged`: columns and values of `tile` places and some more; in "fill" as many results
Result        exact: each result is made of one value of each matrix
</%doc>
<%
    fill = phase == "fill"
    # The last work-item may go on for `span` places, and one more, in each matrix.
    n_staged = tile + span + 2
%>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const ulong n_places, ${"" if staged else "const ulong span,"}
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const B_VALUE *restrict b_values,
% if fill:
    global const I *restrict starts,
    global I *restrict indptr, global I *restrict indices, global C_VALUE *restrict values)
% else:
    global I *restrict counts)
% endif
{
    const uint me = get_local_id(0);
% if staged:
    const uint span = ${span};
% endif
    const ulong begin = get_global_id(0) * span, end = min(begin + span, n_places);
    // Work-items behind the last place stay there, for the barriers.
    ulong place = min(begin, n_places - 1);

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
% if staged:

    // The entries of the work-group's places, those of B behind those of A.
    local I ends[4];
    local I columns[${n_staged}];
    local T staged_values[${n_staged}];
    if (me == 0) {
        ends[0] = a;
        ends[1] = b;
    }
    if (me == ${work_group - 1}) {
        ends[2] = min(a + ${span + 1}, a_indptr[n_rows]);
        ends[3] = min(b + ${span + 1}, b_indptr[n_rows]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const I first_a = ends[0], first_b = ends[1];
    const uint n_a = (uint)(ends[2] - first_a), n_b = (uint)(ends[3] - first_b);
    for (uint i = me; i < n_a; i += ${work_group}) {
        columns[i] = a_indices[first_a + i];
        staged_values[i] = from_a(a_values[first_a + i]);
    }
    for (uint i = me; i < n_b; i += ${work_group}) {
        columns[n_a + i] = b_indices[first_b + i];
        staged_values[n_a + i] = from_b(b_values[first_b + i]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#define COLUMN_OF_A columns[a - first_a]
#define COLUMN_OF_B columns[n_a + (b - first_b)]
#define VALUE_OF_A staged_values[a - first_a]
#define VALUE_OF_B staged_values[n_a + (b - first_b)]
% if fill:
    local I found_columns[${tile}];
    local C_VALUE found_values[${tile}];
    const I first_kept = starts[(ulong)get_group_id(0) * ${work_group}];
% endif
% else:
#define COLUMN_OF_A a_indices[a]
#define COLUMN_OF_B b_indices[b]
#define VALUE_OF_A from_a(a_values[a])
#define VALUE_OF_B from_b(b_values[b])
% endif
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
        const I of_a_here = more_of_a ? COLUMN_OF_A : I_MAX, of_b_here = more_of_b ? COLUMN_OF_B : I_MAX;
        const bool has_a = of_a_here <= of_b_here, has_b = of_b_here <= of_a_here;
        const C_VALUE result = operate(has_a ? VALUE_OF_A : (T)(0), has_b ? VALUE_OF_B : (T)(0));
        if (${is_kept}) {
% if fill and staged:
            found_columns[kept - first_kept] = min(of_a_here, of_b_here);
            found_values[kept - first_kept] = result;
% elif fill:
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
% elif staged:
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint n_found = (uint)(starts[(ulong)(get_group_id(0) + 1) * ${work_group}] - first_kept);
    for (uint i = me; i < n_found; i += ${work_group}) {
        indices[first_kept + i] = found_columns[i];
        values[first_kept + i] = found_values[i];
    }
% endif
}
