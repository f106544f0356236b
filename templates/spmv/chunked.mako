<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], one work-item to a long chunk of adjacent rows: the kernel for devices whose
work-items are the iterations of a core's loop. A chunk's sum of a row that an earlier chunk began goes to partial[chunk].

A row is summed several entries at a time, by the chunk's mean length. By four sums: eight entries at a time, its end by the bits
of what is left; or by vectors with a mask for its end: one block, which a core predicts, as it does not the ends of rows whose
lengths change from row to row. So vectors are for short rows of uneven lengths, which chunks tell themselves or, if the compiler
gathers well, the plan: `all`.

Source        own; chunks of equal rows + entries after Merrill and Garland, SC 2016, Section 4 (their CPU kernel)
Index space   n_parts work-items
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako; columns in any order, duplicates allowed; rows may be
              empty; if `narrow`, columns and lowest of narrow.mako take the place of A's
Local memory  none
Result        deterministic: a row is summed in the order that the chunks and the row lengths give
</%doc>
<%
    # Whether x of later entries is asked for; columns that fit 16 bits are near.
    ways = (True, False) if ahead and not narrow else (False,)
    column = "ushort" if narrow else "I"

    def added(sum, k, asks):
        return f"{f'ASK_FOR_X({k}) ' if asks else ''}sum_{sum} = ADD(sum_{sum}, TERM({k}));"
%>\
#include "spmv.cl"
#include "prefetch.cl"
#include "unaligned.cl"
#include "vectors.cl"

// Data and columns are asked for this far ahead: their stream begins anew at each row, which hides it from the hardware.
% if ahead:
    #define PREFETCH(k) PREFETCH_LINE(data + (k) + ${ahead}) PREFETCH_LINE(indices + (k) + ${ahead})
% else:
    #define PREFETCH(k)
% endif
% if True in ways:
    // If columns lie far apart, x is asked for, too.
    #define ASK_FOR_X(k) PREFETCH_TO_SECOND(x + indices[(k) + ${x_ahead}])
% endif
## Without restrict if it is inlined: that leaves an intrinsic that Oclgrind lacks (quirk 27).
<% restrict = "restrict " if all else "" %>\
#define ENTRIES_PARAMETERS \
    ulong k, const ulong end, \
    global const ${column} *${restrict}indices, global const A_VALUE *${restrict}data, global const X_VALUE *${restrict}x
#define MATRIX indices, data, x
#define TERM(k) MULTIPLY(from_a(data[k]), LOAD_X(x + indices[k]))

// Functions are inlined by order and AT_MOST stands for min: for some compilers both are calls (quirk 41). One that gathers well
// makes better loops of functions of their own.
#define ROW_SUM ${"" if all else "static inline __attribute__((always_inline)) "}T
#define AT_MOST(a, b) ((a) < (b) ? (a) : (b))

% for asks in ways:
<% way = "_asking" if asks else "" %>\
// The sum of the entries from k to end, one by one${"; x of later entries is asked for" if asks else ""}.
ROW_SUM row_sum_1${way}(ENTRIES_PARAMETERS)
{
    T sum_0 = ZERO;
    PREFETCH(k)
    for (; k < end; ++k) {
        ${added(0, "k", asks)}
    }
    return sum_0;
}
% if not all:

// The same by four sums.
ROW_SUM row_sum_8${way}(ENTRIES_PARAMETERS)
{
    T ${", ".join(f"sum_{i} = ZERO" for i in range(4))};
    for (; k + 8 <= end; k += 8) {
        PREFETCH(k)
% for i in range(8):
        ${added(i % 4, f"k + {i}", asks)}
% endfor
    }
    const ulong left = end - k;
    if (left & 4) {
        PREFETCH(k)
% for i in range(4):
        ${added(i, f"k + {i}", asks)}
% endfor
        k += 4;
    }
    if (left & 2) {
% for i in range(2):
        ${added(i, f"k + {i}", asks)}
% endfor
        k += 2;
    }
    if (left & 1) {
        ${added(2, "k", asks)}
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
% for asks in ways:
<% way = "_asking" if asks else "" %>\
% for width in vector_widths:
<%
    n = min(width, longest)
    parts = range(0, width, n)
%>
// The same by vectors, ${width} at a time; reads, and ignores, what follows up to entry end + ${width - 1}.
ROW_SUM row_vectors_${width}${way}(ENTRIES_PARAMETERS)
{
    const ${mask}${n} numbers = (${mask}${n})(${", ".join(str(i) for i in range(n))});
% for part in parts:
    ${value}${n} sums_${part} = (${value}${n})ZERO;
% endfor
    for (; k < end; k += ${width}) {
        PREFETCH(k)
% if asks:
% for i in range(width):
        ASK_FOR_X(k + ${i})
% endfor
% endif
        const ${mask}${n} left = (${mask}${n})AT_MOST(end - k, ${width});
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
        sums_${part} = add_${n}(sums_${part}, numbers + ${part} < left ? products_${part} : (${value}${n})ZERO);
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

// The sum of a piece of a long row.
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
    // 64 bits for what counts: conversions in the loops cost more than the width.
    ulong row = part_row[part], k = part_entry[part];
    const ulong row_end = part_row[part + 1], part_end = part_entry[part + 1];

    if (k < indptr[row]) {
        const ulong next = indptr[row], end = AT_MOST(next, part_end);
        partial[part] = PIECE_SUM(k, end);
        k = end;
    }
    // The rows that end in this chunk: its last one may not.
    const ulong whole = row < row_end && indptr[row_end] > part_end ? row_end - 1 : row_end;
% if True in ways:
    // Of the chunk's first entries, the columns that they span.
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
    // Of the chunk's first rows, those whose length is not that of the row before.
    const ulong looked_at = AT_MOST(row + ${looked_at}, row_end);
    uint changes = 0;
    for (ulong r = row + 1; r < looked_at; ++r)
        changes += indptr[r + 1] - indptr[r] != indptr[r] - indptr[r - 1];
    const bool by_vectors = mean < ${uneven_to} && changes * 4 > looked_at - row;
% elif all:
    const bool by_vectors = true;
% endif
## Rows of columns far apart have loops of their own, so that the others' loops stay as they are.
% for asks in ways:
<%
    where, way = (" && far", "_asking") if asks else ("", "")
    room = x_ahead if asks else 0
%>\
% for width, from_mean in sorted(zip(vector_widths, vectors_from), reverse=True):
    if (by_vectors && mean >= ${from_mean}f${where})
        // The rows at the matrix's end are left to what follows: reading past them would leave the arrays.
        for (; row < whole && (ulong)indptr[row + 1] + ${width + room} <= n_entries; ++row) {
            const ulong end = indptr[row + 1];
            update(SCALE_ARGUMENTS y + row, row_vectors_${width}${way}(k, end, MATRIX));
            k = end;
        }
% endfor
% for width, from_mean in sums_from if asks else sums_from[:1]:
    if (mean >= ${from_mean}f${where})
        for (; row < whole${f" && (ulong)indptr[row + 1] + {room} <= n_entries" if asks else ""}; ++row) {
            const ulong end = indptr[row + 1];
            update(SCALE_ARGUMENTS y + row, row_sum_${width}${way}(k, end, MATRIX));
            k = end;
        }
% endfor
% endfor
## Not in every kernel, as its array makes the loops above slower with some compilers.
% if empty and not scaled:
    if (mean < 1) {
        // Mostly empty rows: the others are listed without a branch.
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
