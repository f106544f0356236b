<%doc>
Apply an operator to two matrices entry by entry, on the union of their patterns: a matrix that has no entry at a position has 0
there. Results that are 0 are left out. Phase "count": how many results each work-item keeps; phase "fill": the results, once it
is known where each work-item's results go.

Source        the merge path of two sorted lists, as in union_cuts.mako
Index space   a work-item for each tile
Inputs        both matrices in canonical format, of the same shape; cuts, of union_cuts.mako; "fill": starts: how many results
              come before each tile
Output        "count": counts[tile + 1]; "fill": indptr from its second number on, indices and values of the result
Local memory  none
Result        exact: each result is made of one value of each matrix
</%doc>
<%
    fill = phase == "fill"
%>\
<%def name="keep(column, of_a, of_b)">
            const C_VALUE result = operate(${of_a}, ${of_b});
            if (${is_kept}) {
                indices[n_results] = ${column};
                values[n_results] = result;
                ++n_results;
            }
</%def>\
% if not fill:
I is_kept(const T a, const T b)
{
    const C_VALUE result = operate(a, b);
    return ${is_kept} ? 1 : 0;
}

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict cuts,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const A_VALUE *restrict a_values,
    global const I *restrict b_indptr, global const I *restrict b_indices, global const B_VALUE *restrict b_values,
% if fill:
    global const I *restrict starts,
    global I *restrict indptr, global I *restrict indices, global C_VALUE *restrict values)
% else:
    global I *restrict counts)
% endif
{
    const ulong tile = get_global_id(0);
    I row = cuts[3 * tile], a = cuts[3 * tile + 1], b = cuts[3 * tile + 2];
    const I last_row = cuts[3 * tile + 3], last_a = cuts[3 * tile + 4], last_b = cuts[3 * tile + 5];
% if fill:
    I n_results = starts[tile];
    const I results_end = starts[tile + 1];
    // Rows with entries of one matrix alone are copied if all results are kept and no column of the tile is in both matrices.
    const bool is_whole = results_end - n_results == (last_a - a) + (last_b - b);
% else:
    // Results of all entries are counted as if the other matrix had no entry there; columns in both matrices are corrected below.
    I n_results = 0;
    for (I k = a; k < last_a; ++k)
        n_results += is_kept(from_a(a_values[k]), (T)(0));
    for (I k = b; k < last_b; ++k)
        n_results += is_kept((T)(0), from_b(b_values[k]));
% endif
    for (;; ++row) {
        const I a_end = row < last_row ? a_indptr[row + 1] : last_a, b_end = row < last_row ? b_indptr[row + 1] : last_b;
% if fill:
        // Rows of both matrices behind the tile's last result are skipped.
        if (n_results == results_end) {
            a = a_end;
            b = b_end;
        }
        while (a < a_end && b < b_end) {
            const I of_a = a_indices[a], of_b = b_indices[b];
            const T a_value = from_a(a_values[a]), b_value = from_b(b_values[b]);
            if (of_a == of_b) {${keep("of_a", "a_value", "b_value")}\
                ++a;
                ++b;
                continue;
            }
            // This step of the merge of two rows has no branch, as no core predicts which matrix has the lower column.
            const I has_a = of_a < of_b;${keep("has_a ? of_a : of_b", "has_a ? a_value : (T)(0)", "has_a ? (T)(0) : b_value")}\
            a += has_a;
            b += 1 - has_a;
        }
        if (is_whole) {
            for (; a < a_end; ++a, ++n_results) {
                indices[n_results] = a_indices[a];
                values[n_results] = operate(from_a(a_values[a]), (T)(0));
            }
            for (; b < b_end; ++b, ++n_results) {
                indices[n_results] = b_indices[b];
                values[n_results] = operate((T)(0), from_b(b_values[b]));
            }
        }
        for (; a < a_end; ++a) {${keep("a_indices[a]", "from_a(a_values[a])", "(T)(0)")}\
        }
        for (; b < b_end; ++b) {${keep("b_indices[b]", "(T)(0)", "from_b(b_values[b])")}\
        }
% else:
        if (a < a_end && b < b_end && a_indices[a] <= b_indices[b_end - 1] && b_indices[b] <= a_indices[a_end - 1])
            while (a < a_end && b < b_end) {
                const I of_a = a_indices[a], of_b = b_indices[b];
                if (of_a == of_b) {
                    const T a_value = from_a(a_values[a]), b_value = from_b(b_values[b]);
                    n_results += is_kept(a_value, b_value) - is_kept(a_value, (T)(0)) - is_kept((T)(0), b_value);
                }
                a += of_a <= of_b;
                b += of_b <= of_a;
            }
        a = a_end;
        b = b_end;
% endif
        if (row == last_row)
            break;
% if fill:
        indptr[row + 1] = n_results;
% endif
    }
% if not fill:
    counts[tile + 1] = n_results;
% endif
}
