<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], one work-item to a long chunk of adjacent rows: the kernel for devices whose
work-items are the iterations of a core's loop. A chunk's sum of a row that an earlier chunk began goes to partial[chunk].

The mean row length of the chunk decides how a row is summed. Either eight entries at a time into four sums, and the rest by the
bits of its length; or by vectors, with a mask at the row's end. The masked loop has one branch, which a core predicts even where
row lengths change from row to row: vectors are for short rows of uneven lengths. Each chunk decides for itself or, if the
compiler gathers well, the plan decides for all chunks: `all`.

Source        own; chunks of equal rows + entries after Merrill and Garland, SC 2016, Section 4 (their CPU kernel)
Index space   n_parts work-items
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako; columns in any order, duplicates allowed; rows may be
              empty; if `narrow`, columns and lowest of narrow.mako take the place of A's
Local memory  none
Result        deterministic: a row is summed in the order that the chunks and the row lengths give
</%doc>
<%
    # Whether to prefetch x; not for columns that fit 16 bits, which are near one another.
    prefetch_options = (True, False) if ahead and not narrow else (False,)
    column = "ushort" if narrow else "I"

    def add_term(sum, k, prefetches):
        return f"{f'PREFETCH_X({k}) ' if prefetches else ''}sum_{sum} = ADD(sum_{sum}, TERM({k}));"
%>\
#include "spmv.cl"
#include "prefetch.cl"
#include "unaligned.cl"
#include "vectors.cl"

// Prefetch values and columns of A: the loads begin anew at each row, which defeats the prefetching of the hardware.
% if ahead:
    #define PREFETCH(k) PREFETCH_LINE(data + (k) + ${ahead}) PREFETCH_LINE(indices + (k) + ${ahead})
% else:
    #define PREFETCH(k)
% endif
% if True in prefetch_options:
    // Prefetch entries of the vector x, too, if the columns of A's entries lie far apart.
    #define PREFETCH_X(k) PREFETCH_TO_SECOND(x + indices[(k) + ${x_ahead}])
% endif
## Functions that are inlined do without restrict, which leaves an intrinsic that Oclgrind lacks (quirk 27).
<% restrict = "restrict " if all else "" %>\
#define ENTRIES_PARAMETERS \
    ulong k, const ulong end, \
    global const ${column} *${restrict}indices, global const A_VALUE *${restrict}data, global const X_VALUE *${restrict}x
#define MATRIX indices, data, x
#define TERM(k) MULTIPLY(from_a(data[k]), LOAD_X(x + indices[k]))

// Functions that sum a row are always_inline, and AT_MOST stands for min: some compilers make calls of both (quirk 41).
// Compilers with good vector gathers make better loops of functions that sum a row if these are not inlined.
#define ROW_SUM ${"" if all else "static inline __attribute__((always_inline)) "}T
#define AT_MOST(a, b) ((a) < (b) ? (a) : (b))

% for prefetches in prefetch_options:
<% suffix = "_prefetching" if prefetches else "" %>\
// The sum of a row's products with x, of the entries from k to end one by one${"; prefetches x" if prefetches else ""}.
ROW_SUM row_sum_1${suffix}(ENTRIES_PARAMETERS)
{
    T sum_0 = ZERO;
    PREFETCH(k)
    for (; k < end; ++k) {
        ${add_term(0, "k", prefetches)}
    }
    return sum_0;
}
% if not all:

// The sum of a row's products with x, of the entries from k to end, by four sums side by side.
ROW_SUM row_sum_8${suffix}(ENTRIES_PARAMETERS)
{
    T ${", ".join(f"sum_{i} = ZERO" for i in range(4))};
    for (; k + 8 <= end; k += 8) {
        PREFETCH(k)
% for i in range(8):
        ${add_term(i % 4, f"k + {i}", prefetches)}
% endfor
    }
    const ulong remaining = end - k;
    if (remaining & 4) {
        PREFETCH(k)
% for i in range(4):
        ${add_term(i, f"k + {i}", prefetches)}
% endfor
        k += 4;
    }
    if (remaining & 2) {
% for i in range(2):
        ${add_term(i, f"k + {i}", prefetches)}
% endfor
        k += 2;
    }
    if (remaining & 1) {
        ${add_term(2, "k", prefetches)}
    }
    return ADD(ADD(sum_0, sum_2), ADD(sum_1, sum_3));
}
% endif

% endfor
% for n in sorted({min(width, longest) for width in vector_widths}):

% for type in dict.fromkeys((value,) if narrow else (value, index)):
UNALIGNED(${type}, ${n})
% endfor
${value}${n} add_${n}(const ${value}${n} a, const ${value}${n} b) { return ${add}; }
${value}${n} multiply_${n}(const ${value}${n} a, const ${value}${n} b) { return ${multiply}; }
% endfor
% for prefetches in prefetch_options:
<% suffix = "_prefetching" if prefetches else "" %>\
% for width in vector_widths:
<%
    n = min(width, longest)
    parts = range(0, width, n)
%>
// A row's sum of the entries from k to end, by vectors of ${width}; reads, and ignores, entries up to end + ${width - 1}.
ROW_SUM row_vectors_${width}${suffix}(ENTRIES_PARAMETERS)
{
    const ${mask}${n} numbers = (${mask}${n})(${", ".join(str(i) for i in range(n))});
% for part in parts:
    ${value}${n} sums_${part} = (${value}${n})ZERO;
% endfor
    for (; k < end; k += ${width}) {
        PREFETCH(k)
% if prefetches:
% for i in range(width):
        PREFETCH_X(k + ${i})
% endfor
% endif
        const ${mask}${n} remaining = (${mask}${n})AT_MOST(end - k, ${width});
% for part in parts:
% if narrow:
        const ${value}${n} values_${part} = (${value}${n})(
            ${", ".join(f"x[indices[k + {part + i}]]" for i in range(n))});
% else:
        const ${index}${n} column_${part} = LOAD_UNALIGNED(${index}, ${n}, indices + k + ${part});
        const ${value}${n} values_${part} = (${value}${n})(
            ${", ".join(f"x[column_{part}.s{i}]" for i in range(n))});
% endif
        const ${value}${n} products_${part} = multiply_${n}(LOAD_UNALIGNED(${value}, ${n}, data + k + ${part}), values_${part});
        sums_${part} = add_${n}(sums_${part}, numbers + ${part} < remaining ? products_${part} : (${value}${n})ZERO);
% endfor
    }
% if n == 8:
    const ${value}4 four = add_4(sums_0.lo, sums_0.hi);
% elif width == 8:
    const ${value}4 four = add_4(sums_0, sums_4);
% else:
    const ${value}4 four = sums_0;
% endif
    return ADD(ADD(four.s0, four.s2), ADD(four.s1, four.s3));
}
% endfor
% endfor

// PIECE_SUM: the sum of products of a piece of a long row, which several chunks share.
% if all:
    #define PIECE_SUM(k, end) \
        ((end) + ${vector_widths[-1]} <= n_entries ? row_vectors_${vector_widths[-1]}(k, end, MATRIX) : row_sum_1(k, end, MATRIX))
% else:
    #define PIECE_SUM(k, end) row_sum_8(k, end, MATRIX)
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    const I n_parts, const I n_entries,
    global const I *restrict part_row, global const I *restrict part_entry, global T *restrict partial,
    global const I *restrict indptr, global const ${column} *restrict indices${", global const I *restrict lowest" if narrow else ""})
{
    const ulong part = get_global_id(0);
    if (part >= n_parts)
        return;
    global const X_VALUE *restrict x = x_base + x_offset${" + lowest[part]" if narrow else ""};
    global T *restrict y = y_base + y_offset;
    // Numbers of rows and entries have 64 bits: conversions in the loops would cost more than the width.
    ulong row = part_row[part], k = part_entry[part];
    const ulong row_end = part_row[part + 1], part_end = part_entry[part + 1];

    if (k < indptr[row]) {
        const ulong next = indptr[row], end = AT_MOST(next, part_end);
        partial[part] = PIECE_SUM(k, end);
        k = end;
    }
    // Rows before `whole` end in this chunk; the chunk's last row may go on in the next chunk.
    const ulong whole = row < row_end && indptr[row_end] > part_end ? row_end - 1 : row_end;
% if True in prefetch_options:
    // From `lowest` to `highest`: the columns that the chunk's first entries span.
    const ulong sampled = AT_MOST(k + ${looked_at}, part_end);
    I lowest = k < part_end ? indices[k] : 0, highest = lowest;
    for (ulong j = k; j < sampled; ++j) {
        const I column = indices[j];
        lowest = column < lowest ? column : lowest;
        highest = column > highest ? column : highest;
    }
    const bool far = highest - lowest >= ${far};
% endif
    const float mean = row < row_end ? (float)(part_end - k) / (row_end - row) : 0;
% if vector_widths and not all:
    // `changes`: how many of the chunk's first rows have another length than the row before.
    const ulong looked_at = AT_MOST(row + ${looked_at}, row_end);
    uint changes = 0;
    for (ulong r = row + 1; r < looked_at; ++r)
        changes += indptr[r + 1] - indptr[r] != indptr[r] - indptr[r - 1];
    const bool by_vectors = mean < ${uneven_to} && changes * 4 > looked_at - row;
% elif all:
    const bool by_vectors = true;
% endif
## Rows whose columns lie far apart have loops that prefetch x, so that the loops for other rows stay as they are.
% for prefetches in prefetch_options:
<%
    where, suffix = (" && far", "_prefetching") if prefetches else ("", "")
    room = x_ahead if prefetches else 0
%>\
% for width, from_mean in sorted(zip(vector_widths, vectors_from), reverse=True):
    if (by_vectors && mean >= ${from_mean}f${where})
        // The last rows of the matrix are left to the loops below: vectors would read past the ends of the arrays.
        for (; row < whole && (ulong)indptr[row + 1] + ${width + room} <= n_entries; ++row) {
            const ulong end = indptr[row + 1];
            update(SCALE_ARGUMENTS y + row, row_vectors_${width}${suffix}(k, end, MATRIX));
            k = end;
        }
% endfor
% for width, from_mean in sums_from if prefetches else sums_from[:1]:
    if (mean >= ${from_mean}f${where})
        for (; row < whole${f" && (ulong)indptr[row + 1] + {room} <= n_entries" if prefetches else ""}; ++row) {
            const ulong end = indptr[row + 1];
            update(SCALE_ARGUMENTS y + row, row_sum_${width}${suffix}(k, end, MATRIX));
            k = end;
        }
% endfor
% endfor
## The list of nonempty rows is not in every kernel, as the list's array makes the loops above slower with some compilers.
% if empty and not scaled:
    if (mean < 1) {
        // In a chunk of mostly empty rows, the nonempty rows are listed first, without a branch.
        uchar listed[256];
        while (row < whole) {
            const uint n = AT_MOST(256ul, whole - row);
            uint n_listed = 0;
            for (uint j = 0; j < n; ++j) {
                y[row + j] = ZERO;
                listed[n_listed] = j;
                n_listed += indptr[row + j + 1] > indptr[row + j];
            }
            for (uint j = 0; j < n_listed; ++j) {
                const ulong r = row + listed[j];
                y[r] = row_sum_1(indptr[r], indptr[r + 1], MATRIX);
            }
            row += n;
        }
        k = row < row_end ? (ulong)indptr[row] : k;
    }
% endif
    for (; row < whole; ++row) {
        const ulong end = indptr[row + 1];
        update(SCALE_ARGUMENTS y + row, row_sum_1(k, end, MATRIX));
        k = end;
    }
    if (row < row_end)
        update(SCALE_ARGUMENTS y + row, PIECE_SUM(k, part_end));
}
