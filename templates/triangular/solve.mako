<%doc>
Solve a triangular system: `width` columns of b row by row or, with `tiled`, the rows of tiles that need none of each other; or
rows level by level, after the levels of the unknowns that they need. Entries on the other side of the diagonal are passed over,
and with `unit` entries on the diagonal. With `diagonal_at_end` there are none of the former, and each row ends (upper: begins)
with its only diagonal entry.

Source        Golub and Van Loan, "Matrix Computations", 3.1: row-oriented substitution; Anderson and Saad, "Solving sparse
              triangular linear systems on parallel computers": levels; Irigoin and Triolet, "Supernode partitioning": tiles
Index space   `width` > 0: work-groups of one work-item, each for `width` columns, from first_column on, and with `tiled` for a
              tile, from first_tile on. Else several levels: one work-group; one level: any number; work-items stride over the
              rows of a level and the columns
Inputs        indptr, indices, values: of n rows; b: of n x columns, its entry (i, j) at b_begin + i * b_row + j * b_column
              `tiled`: tiles, n, nx, plane: see triangular/tiles; extents: of a tile; skew: see Stencil in grids.py
              `width` 0: order: rows by level; starts: where each level begins in it, with the end; levels first up to last - 1
Output        x: n x columns, row by row, all rows or those of the levels; singular: 1 if a diagonal entry is 0, else unchanged
Local memory  none. Of one work-item it is the plain kernel
Result        deterministic: a row's entries are subtracted in their order; variants agree to rounding: compilers may vectorise
</%doc>
<%
    lanes = range(width or 1)
    # The next row waits for the unknown: a product takes less time than a quotient.
    inverts = not (unit or is_complex)
%>\
<%namespace name="numbers" file="triangular/sync_free"/>\
% if inverts:
${numbers.define_limits(is_double)}\
#define SMALL ${"0x1p-200" if is_double else "0x1p-40f"}
% endif
<%def name="invert()">\
% if inverts:
            const R size = magnitude(diagonal);
            // A factor with which the diagonal entry is neither tiny nor huge.
            const T scale = size < LEAST ? 1 / SMALL : size > GREATEST ? SMALL : 1;
            const T inverse = 1 / (diagonal * scale);
% endif
</%def>\
<%def name="solve_row()">\
            const long b_at = b_begin + row * b_row + (long)column * b_column;
            const ulong x_at = (ulong)row * columns + column;
% for c in lanes:
            T sum${c} = b[b_at + ${c} * b_column];
% endfor
% if diagonal_at_end:
            I k = indptr[row]${" + 1" if upper else ""};
            const I end = indptr[row + 1]${"" if upper else " - 1"};
%     if not unit:
            const T diagonal = values[${"indptr[row]" if upper else "end"}];
%     endif
${invert()}\
            for (; k < end; ++k) {
                const T value = values[k];
                global const T *known = x + (ulong)indices[k] * columns + column;
%     for c in lanes:
                sum${c} -= times(value, known[${c}]);
%     endfor
            }
% else:
            T diagonal = of_real(0);
            for (I k = indptr[row]; k < indptr[row + 1]; ++k) {
                const I j = indices[k];
                const T value = values[k];
                if (j ${">" if upper else "<"} row) {
                    global const T *known = x + (ulong)j * columns + column;
%     for c in lanes:
                    sum${c} -= times(value, known[${c}]);
%     endfor
                }
%     if not unit:
                if (j == row)
                    diagonal += value;
%     endif
            }
${invert()}\
% endif
% if not unit:
            if (magnitude(diagonal) == 0)
                atomic_or(singular, 1);
% endif
% for c in lanes:
%     if inverts:
            x[x_at + ${c}] = sum${c} * scale * inverse;
%     else:
            x[x_at + ${c}] = ${f"sum{c}" if unit else f"quotient(sum{c}, diagonal)"};
%     endif
% endfor
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if tiled:
    const int n, const int nx, const int plane, const int extent_x, const int extent_y, const int extent_z, const int skew_a,
    const int skew_b, const int skew_c, global const int4 *restrict tiles, const uint first_tile, const uint n_columns,
    const ulong columns, const ulong first_column,
% elif width:
    const I n, const ulong columns, const ulong first_column,
% else:
    const uint first, const uint last, const ulong columns, global const int *restrict starts, global const int *restrict order,
% endif
    global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
    global const T *restrict b, const long b_begin, const long b_row, const long b_column, global T *x, global int *singular)
{
% if tiled:
    const uint item = get_global_id(0), number = item / n_columns;
    const ulong column = first_column + (item - number * n_columns) * ${width};
    const int4 least = tiles[first_tile + number];
    for (int z = least.z; z < least.z + extent_z; ++z) {
        for (int iy = least.y; iy < least.y + extent_y; ++iy) {
            const int y = iy - skew_c * z, left = least.x - skew_a * y - skew_b * z, origin = z * plane + y * nx;
            if (y < 0 || (y + 1) * nx > plane)
                continue;
            const int end = min(origin + min(left + extent_x, nx), n);
            for (int place = origin + max(left, 0); place < end; ++place) {
                const I row = ${"n - 1 - place" if upper else "place"};
${solve_row()}\
            }
        }
    }
% elif width:
    const ulong column = first_column + get_global_id(0) * ${width};
    for (I place = 0; place < n; ++place) {
        const I row = ${"n - 1 - place" if upper else "place"};
${solve_row()}\
    }
% else:
    for (uint level = first; level < last; ++level) {
        const ulong begin = (ulong)starts[level] * columns, end = (ulong)starts[level + 1] * columns;
%     if work_group == 1:
        // A work-item is a core's loop: it takes neighbouring rows.
        const ulong span = (end - begin + get_num_groups(0) - 1) / get_num_groups(0), first_row = begin + get_group_id(0) * span;
        for (ulong i = first_row; i < min(first_row + span, end); ++i) {
%     else:
        for (ulong i = begin + get_global_id(0); i < end; i += get_global_size(0)) {
%     endif
            const ulong at = columns == 1 ? i : i / columns, column = i - at * columns;
            const I row = order[at];
${solve_row()}\
        }
%     if work_group > 1:
        barrier(CLK_GLOBAL_MEM_FENCE);
%     endif
    }
% endif
}
