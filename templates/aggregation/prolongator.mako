<%doc>
A prolongator smoothed by a step of the Jacobi method, P = (1 - gain D^-1 A) T with the damping factor gain, for a T of at most
one entry a row, such as that of one candidate. `make`: rows of P, each in the room of A's row, or, if a work-item's rows are
`adjacent`, one after another in the room of all of them; `pack`: rows moved together; `values`: the values of a P whose structure
is there.

Source        Vanek, Mandel and Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
              problems"
Index space   work-items that stride over the rows, or take adjacent ones: `spread` says which
Inputs        A in canonical format; inverse: the inverse of its diagonal D, 0 for rows that are not smoothed; T: its parts, and
              whether all of its rows have an entry. `pack`: rows in their rooms. `pack`, `values`: the row pointers of P
Output        `make`: ascending columns, sums, and the length of each row; else P
Local memory  `local_rows`: `room` columns and sums for each work-item, for rows of P that are no longer; else none
Result        deterministic
</%doc>
<%
    def names(is_local):
        """Return a row's columns and sums by place, in local memory or not."""
        place = f"_of_item[({{}}) * {work_group} + me]" if is_local else "[begin + {}]"
        return [f"{array}{place}".format for array in ("columns", "sums")]
%>\
<%def name="row_of(is_local)">\
<% col, sum = names(is_local) %>\
% if phase == "values":
        for (I k = 0; k < length; ++k) {
% if is_local:
            ${col("k")} = columns[begin + k];
% endif
            ${sum("k")} = ZERO;
        }
% endif
        for (I k = first; k < stop; ++k) {
            const I near = indices[k], at = whole ? near : t_pointers[near];
            if (!whole && t_pointers[near + 1] == at)
                continue;
            const I column = t_columns[at];
            const T term = times(of_real(near == (I)row) - times(scale, values[k]) * gain, t_values[at]);
            // Successive neighbours of a node are mostly in one aggregate: a term's column is first compared to the last term's.
            if (length == 0 || ${col("place")} != column) {
                place = length;
                while (place > 0 && ${col("place - 1")} >= column)
                    --place;
% if phase == "make":
                if (place == length || ${col("place")} != column) {
% if is_local:
                    fits = length < room;
                    if (!fits)
                        break;
% endif
                    for (I after = length; after > place; --after) {
                        ${col("after")} = ${col("after - 1")};
                        ${sum("after")} = ${sum("after - 1")};
                    }
                    ${col("place")} = column;
                    ${sum("place")} = ZERO;
                    ++length;
                }
% endif
            }
            ${sum("place")} += term;
        }
% if is_local:
        for (I k = 0; fits && k < length; ++k) {
% if phase == "make":
            columns[begin + k] = ${col("k")};
% endif
            sums[begin + k] = ${sum("k")};
        }
% endif
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, global const I *restrict indptr,
% if phase == "pack":
    global const I *restrict loose_columns, global const T *restrict loose_sums, global const I *restrict pointers,
    global I *restrict columns, global T *restrict sums)
% else:
    global const I *restrict indices, global const T *restrict values, global const T *restrict inverse, const R gain,
% if local_rows:
    const I room, local I *restrict columns_of_item, local T *restrict sums_of_item,
% endif
    const uint whole, global const I *restrict t_pointers, global const I *restrict t_columns, global const T *restrict t_values,
% if phase == "make":
    global uint *restrict counts, global I *restrict columns, global T *restrict sums)
% else:
    global const I *restrict pointers, global const I *restrict columns, global T *restrict sums)
% endif
% endif
{
% if local_rows:
    const uint me = get_local_id(0);
% endif
    const ulong first_row = get_global_id(0) * stride, end = min(n, first_row + span);
% if phase == "make" and adjacent:
    I next = indptr[min(first_row, n)];
% endif
    for (ulong row = first_row; row < end; row += step) {
% if phase == "pack":
% if adjacent:
        // The rows of P of a work-item, which lie one after another, are moved as one stretch of entries.
        const I begin = pointers[row], length = pointers[end] - begin, first = indptr[row];
        row = end;
% else:
        const I begin = pointers[row], length = pointers[row + 1] - begin, first = indptr[row];
% endif
        for (I k = 0; k < length; ++k)
            columns[begin + k] = loose_columns[first + k];
        for (I k = 0; k < length; ++k)
            sums[begin + k] = loose_sums[first + k];
% else:
        const I first = indptr[row], stop = indptr[row + 1];
        const T scale = inverse[row];
        I place = 0;
% if phase == "make":
        const I begin = ${"next" if adjacent else "first"};
        I length = 0;
% else:
        const I begin = pointers[row], length = pointers[row + 1] - begin;
% endif
% if local_rows:
        bool fits = ${"true" if phase == "make" else "length <= room"};
        if (fits) {
${row_of(True)}\
        }
        if (!fits) {
            place = 0;
% if phase == "make":
            length = 0;
% endif
${row_of(False)}\
        }
% else:
${row_of(False)}\
% endif
% if phase == "make":
        counts[row] = length;
% if adjacent:
        next += length;
% endif
% endif
% endif
    }
}
