<%doc>
Y = alpha * A @ X + beta * Y for a dense X of any number of columns and any strides: a team of `lanes` work-items to a part of A,
whose rows and entries together are as many as another part's. A work-item keeps the sums of `vectors` vectors of `width`
adjacent columns; it has the loads of `unroll` entries in flight, whatever rows they belong to, or, with an unroll of 1, sums row
by row. Blocks of lanes * vectors * width columns are teams of their own. A part's sum of a row that an earlier part began goes to
partial[part_slot[part]]. If `rows` is 1 each row is a part, and `unroll` entries of a row are taken at a time; if it is more, a
part has at most so many adjacent rows, with the same columns: what is loaded of a row of X serves all of them. If `exact` a block
has all columns, adjacent in X and Y, and rows of X are less than 2^31 values apart.

Source        merge-based SpMM: Yang, Buluc and Owens, Euro-Par 2018, with parts made by partition.mako; rows ending in a team's
              part are written by it alone, as in Merrill and Garland, SC 2016
Index space   ceil(n_parts / teams of a work-group) * n_blocks work-groups; neighbours have blocks of columns of the same parts
              or, if `outer`, parts of the same block
Inputs        x begins x_offset entries into its buffer, its entry (i, j) is i * x_row + j * x_column further; the same for y;
              vectors of more than one column need adjacent columns, a multiple of width of them and, if `aligned`, addresses of
              vectors; part_row, part_entry: n_parts + 1 each, of partition.mako with row_weight 1, or a part to a row; with
              `rows` part_row, the first row of each; columns in any order, duplicates allowed; rows may be empty
Local memory  if `staged`, the columns and values of a work-group's entries, which come as arguments; else none
Result        deterministic: the parts give the order in which a row is summed, or it is the row's own, whatever `rows` is
</%doc>
<%
    teams = work_group // lanes
    slots, members = range(vectors), range(max(rows, 1))
%>
#include "spmv.cl"
% if width == 1:
#define TV T
#define LOAD_XV(p) LOAD_X(p)
#define ADD_V(a, b) ADD(a, b)
#define MULTIPLY_V(a, b) MULTIPLY(a, b)
#define LOAD_YV(p) (*(p))
#define STORE_YV(p, v) (*(p) = (v))
% else:
#include "vectors.cl"
#include "unaligned.cl"
    typedef ${value}${width} TV;
    TV ADD_V(const TV a, const TV b) { return ${add}; }
    TV MULTIPLY_V(const TV a, const TV b) { return ${multiply}; }
    % if aligned:
#define LOAD_XV(p) (*(global const TV *)(p))
#define LOAD_YV(p) (*(global TV *)(p))
#define STORE_YV(p, v) (*(global TV *)(p) = (v))
    % else:
        UNALIGNED(${value}, ${width})
#define LOAD_XV(p) LOAD_UNALIGNED(${value}, ${width}, p)
#define LOAD_YV(p) LOAD_UNALIGNED(${value}, ${width}, p)
#define STORE_YV(p, v) vstore${width}(v, 0, p)
    % endif
% endif
void update_v(SCALE_PARAMETERS global T *y, const TV sum)
{
#if SCALED
    TV scaled = MULTIPLY_V((TV)alpha, sum);
    if (!is_zero(beta))
        scaled = ADD_V(scaled, MULTIPLY_V((TV)beta, LOAD_YV(y)));
    STORE_YV(y, scaled);
#else
    STORE_YV(y, sum);
#endif
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
% if exact:
    const int x_row, const long y_row,
% else:
    const long x_row, const long x_column, const long y_row, const long y_column, const uint n_columns, const uint n_blocks,
% endif
    const I n_parts,
% if rows > 1:
    global const I *restrict part_row,
% elif not rows:
    global const I *restrict part_row, global const I *restrict part_entry, global const I *restrict part_slot,
    global T *restrict partial,
% endif
% if staged:
    local I *restrict staged_columns, local T *restrict staged_values,
% endif
    global const I *restrict indptr, global const I *restrict indices)
{
    const uint me = get_local_id(0);
% if exact:
    const ulong run = get_group_id(0);
% elif outer:
    const ulong n_runs = ((ulong)n_parts + ${teams - 1}) / ${teams};
    const uint block = (uint)(get_group_id(0) / n_runs);
    const ulong run = get_group_id(0) - block * n_runs;
% else:
    const ulong run = get_group_id(0) / n_blocks;
    const uint block = (uint)(get_group_id(0) - run * n_blocks);
% endif
    const ulong part = run * ${teams} + me / ${lanes};
% if rows:
    if (part >= n_parts)
        return;
% if rows > 1:
    const I row = part_row[part];
    const uint n_rows = (uint)(part_row[part + 1] - row);
% else:
    const ulong row = part;
% endif
    const I begin = indptr[row];
    const uint n = (uint)(indptr[row + 1] - begin);
    // own_r: the number of entries of a part of several rows that come before its row r; 0 if the part has no row r.
    const I own_0 = 0;
% for r in members[1:]:
    const I own_${r} = ${r} < n_rows ? (I)n * ${r} : 0;
% endfor
% else:
% if staged:
    const I staged_begin = part_entry[run * ${teams}];
    const uint n_staged = (uint)(part_entry[min((run + 1) * ${teams}, (ulong)n_parts)] - staged_begin);
    for (uint i = me; i < n_staged; i += ${work_group}) {
        staged_columns[i] = LOAD_INDEX(indices + staged_begin + i);
        staged_values[i] = LOAD_A(data + staged_begin + i);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
    if (part >= n_parts)
        return;
    const I begin = part_entry[part], row_end = part_row[part + 1];
    const uint n = (uint)(part_entry[part + 1] - begin);
    I row = part_row[part];
    // A part of A begins with the rest of the row that an earlier part began, if there is one.
    bool is_rest = begin < indptr[row];
    if (is_rest)
        --row;
    else if (row == row_end)
        return;
% if staged:
    local const I *restrict columns = staged_columns + (begin - staged_begin);
    local const T *restrict values = staged_values + (begin - staged_begin);
#define COLUMN(i) columns[i]
#define VALUE(i) values[i]
% else:
#define COLUMN(i) indices[begin + (i)]
#define VALUE(i) from_a(data[begin + (i)])
% endif
% endif
% if exact:
    global const X_VALUE *restrict x_begin = x_base + x_offset + me % ${lanes} * ${width};
    global T *restrict y = y_base + y_offset + (long)row * y_row + me % ${lanes} * ${width};
#define X(c) (x_begin + (c) * ${lanes * width})
#define Y(c) (y + (c) * ${lanes * width})
#define IS_THERE(c) true
% else:
    // A lane behind the last column of X loads the last columns and writes nothing.
    const uint lane = me % ${lanes};
% for c in slots:
    const uint column_${c} = block * ${lanes * vectors * width} + (lane + ${c * lanes}) * ${width};
    global const X_VALUE *restrict x_${c} = x_base + x_offset + (long)min(column_${c}, n_columns - ${width}) * x_column;
% endfor
% if rows:
    global T *restrict y = y_base + y_offset + (long)row * y_row;
#define X(c) x_##c
#define Y(c) (y + (long)column_##c * y_column)
#define IS_THERE(c) (column_##c < n_columns)
% endif
% endif
% for c in slots:
% for r in members:
    TV sum_${r}_${c} = (TV)ZERO;
% endfor
% endfor
% if rows:
    for (uint i = 0; i < n; i += ${unroll}) {
% for u in range(unroll):
        const I at_${u} = begin + ${"i" if u == 0 else f"min(i + {u}, n - 1)"};
        const long from_${u} = (long)indices[at_${u}] * x_row;
% for r in members:
        const T a_${u}_${r} = from_a(data[at_${u} + own_${r}]);
% endfor
% endfor
% for u in range(unroll):
% for c in slots:
        const TV x_${u}_${c} = LOAD_XV(X(${c}) + from_${u});
% endfor
% endfor
% for u in range(unroll):
        if (${"true" if u == 0 else f"i + {u} < n"}) {
% for r in members:
% for c in slots:
            sum_${r}_${c} = ADD_V(sum_${r}_${c}, MULTIPLY_V((TV)a_${u}_${r}, x_${u}_${c}));
% endfor
% endfor
        }
% endfor
    }
% for r in members:
% if r:
    if (${r} >= n_rows)
        return;
    y += y_row;
% endif
% for c in slots:
    if (IS_THERE(${c}))
        update_v(SCALE_ARGUMENTS Y(${c}), sum_${r}_${c});
% endfor
% endfor
% else:

    // FLUSH: stores a row's sums, in Y or, if an earlier part of A began the row, in partial; then goes on to the next row.
    #define FLUSH \
        if (is_rest) { \
% for c in slots:
            if (column_${c} < n_columns) \
                STORE_YV(partial + (ulong)part_slot[part] * n_columns + column_${c}, sum_0_${c}); \
% endfor
            is_rest = false; \
        } else { \
            global T *restrict y = y_base + y_offset + (long)row * y_row; \
% for c in slots:
            if (column_${c} < n_columns) \
                update_v(SCALE_ARGUMENTS y + (long)column_${c} * y_column, sum_0_${c}); \
% endfor
        } \
% for c in slots:
        sum_0_${c} = (TV)ZERO; \
% endfor
        ++row;
    // `until` is the end of the row, counted from the first entry of the part of A, but at most the end of the part.
    uint until = (uint)min(indptr[row + 1] - begin, (I)n);
% if unroll == 1:
    uint i = 0;
    while (true) {
        for (; i < until; ++i) {
            const long from = (long)COLUMN(i) * x_row;
            const T a = VALUE(i);
% for c in slots:
            sum_0_${c} = ADD_V(sum_0_${c}, MULTIPLY_V((TV)a, LOAD_XV(x_${c} + from)));
% endfor
        }
        FLUSH
        if (row >= row_end)
            break;
        until = (uint)min(indptr[row + 1] - begin, (I)n);
    }
% else:
    for (uint i = 0; i < n; i += ${unroll}) {
% for u in range(unroll):
        const uint at_${u} = ${"i" if u == 0 else f"min(i + {u}, n - 1)"};
        const long from_${u} = (long)COLUMN(at_${u}) * x_row;
        const T a_${u} = VALUE(at_${u});
% endfor
% for u in range(unroll):
% for c in slots:
        const TV x_${u}_${c} = LOAD_XV(x_${c} + from_${u});
% endfor
% endfor
% for u in range(unroll):
        if (${"true" if u == 0 else f"i + {u} < n"}) {
            while (at_${u} >= until) {
                FLUSH
                until = (uint)min(indptr[row + 1] - begin, (I)n);
            }
% for c in slots:
            sum_0_${c} = ADD_V(sum_0_${c}, MULTIPLY_V((TV)a_${u}, x_${u}_${c}));
% endfor
        }
% endfor
    }
    do {
        FLUSH
    } while (row < row_end);
% endif
% endif
}
