<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], one work-item to a long chunk of adjacent rows: the kernel for devices whose
work-items are the iterations of a core's loop. A chunk's sum of a row that an earlier chunk began goes to partial[chunk].

A row is summed several entries at a time, by the chunk's mean length. By sums: as many sums as entries, its end one by one; or
by vectors with a mask for its end: one block, which a core predicts, as it does not the ends of rows whose lengths change from
row to row. So vectors are for short rows of uneven lengths or, if the compiler gathers well, for `all`.

Source        own; chunks of equal rows + entries after Merrill and Garland, SC 2016, Section 4 (their CPU kernel)
Index space   n_parts work-items
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako; columns in any order, duplicates allowed; rows may be
              empty
Local memory  none
Result        deterministic: a row is summed in the order that the chunks and the row lengths give
</%doc>
<%
    def halves(width):
        while width > 1:
            width //= 2
            yield width

    # Whether x of later entries is asked for.
    ways = (True, False) if ahead else (False,)
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
% if ahead:
    // If columns lie far apart, x is asked for, too.
    #define ASK_FOR_X(k) PREFETCH_TO_SECOND(x + indices[(k) + ${x_ahead}])
% endif
## Without restrict if it is inlined: that leaves an intrinsic that Oclgrind lacks (quirk 27).
<% restrict = "restrict " if all else "" %>\
#define ENTRIES_PARAMETERS \
    ulong k, const ulong end, \
    global const I *${restrict}indices, global const A_VALUE *${restrict}data, global const X_VALUE *${restrict}x
#define MATRIX indices, data, x

// Functions are inlined by order and AT_MOST stands for min: for some compilers both are calls (quirk 41). One that gathers well
// makes better loops of functions of their own.
#define ROW_SUM ${"" if all else "static inline __attribute__((always_inline)) "}T
#define AT_MOST(a, b) ((a) < (b) ? (a) : (b))

// The sum of the entries from k to end, one by one.
ROW_SUM row_sum_1(ENTRIES_PARAMETERS)
{
    T sum = ZERO;
    PREFETCH(k)
    for (; k < end; ++k)
        sum = ADD(sum, MULTIPLY(from_a(data[k]), LOAD_X(x + indices[k])));
    return sum;
}
% for asks in ways:
<% way = "_asking" if asks else "" %>\
% for width in sum_widths:

// The same by ${width} sums${", and x of later entries is asked for" if asks else ""}.
ROW_SUM row_sum_${width}${way}(ENTRIES_PARAMETERS)
{
    T ${", ".join(f"sum_{i} = ZERO" for i in range(width))};
    for (; k + ${width} <= end; k += ${width}) {
        PREFETCH(k)
% for i in range(width):
% if asks:
        ASK_FOR_X(k + ${i})
% endif
        sum_${i} = ADD(sum_${i}, MULTIPLY(from_a(data[k + ${i}]), LOAD_X(x + indices[k + ${i}])));
% endfor
    }
    for (; k < end; ++k) {
% if asks:
        ASK_FOR_X(k)
% endif
        sum_0 = ADD(sum_0, MULTIPLY(from_a(data[k]), LOAD_X(x + indices[k])));
    }
% for half in halves(width):
% for i in range(half):
    sum_${i} = ADD(sum_${i}, sum_${i + half});
% endfor
% endfor
    return sum_0;
}
% endfor
% endfor
% for n in sorted({min(width, longest) for width in vector_widths}):

% for type in dict.fromkeys((value, index)):
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
        const ${index}${n} column_${part} = LOAD_UNALIGNED(${index}, ${n}, indices + k + ${part});
        const ${value}${n} values_${part} = (${value}${n})(
            ${", ".join(f"x[column_{part}.s{i}]" for i in range(n))});
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

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    SPMV_OPERANDS
    const I n_parts, const I n_entries,
    global const I *restrict part_row, global const I *restrict part_entry, global T *restrict partial,
    global const I *restrict indptr, global const I *restrict indices)
{
    const ulong part = get_global_id(0);
    if (part >= n_parts)
        return;
    global const X_VALUE *restrict x = x_base + x_offset;
    global T *restrict y = y_base + y_offset;
    // 64 bits for what counts: conversions in the loops cost more than the width.
    ulong row = part_row[part], k = part_entry[part];
    const ulong row_end = part_row[part + 1], part_end = part_entry[part + 1];

    if (k < indptr[row]) {
        const ulong next = indptr[row], end = AT_MOST(next, part_end);
% if all:
        partial[part] = end + ${vector_widths[-1]} <= n_entries ? row_vectors_${vector_widths[-1]}(k, end, MATRIX) : row_sum_1(k, end, MATRIX);
% else:
        partial[part] = row_sum_${sum_widths[-1]}(k, end, MATRIX);
% endif
        k = end;
    }
% if ahead:
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
        for (; row < row_end && (ulong)indptr[row + 1] + ${width + room} <= n_entries; ++row) {
            const ulong next = indptr[row + 1], end = AT_MOST(next, part_end);
            update(SCALE_ARGUMENTS y + row, row_vectors_${width}${way}(k, end, MATRIX));
            k = end;
        }
% endfor
% for width, from_mean in sorted(zip(sum_widths, sums_from), reverse=True):
    if (mean >= ${from_mean}f${where})
        for (; row < row_end${f" && (ulong)indptr[row + 1] + {room} <= n_entries" if asks else ""}; ++row) {
            const ulong next = indptr[row + 1], end = AT_MOST(next, part_end);
            update(SCALE_ARGUMENTS y + row, row_sum_${width}${way}(k, end, MATRIX));
            k = end;
        }
% endfor
% endfor
% if not scaled:
    if (mean < 1) {
        // Mostly empty rows: the others are listed without a branch.
        uchar listed[256];
        while (row < row_end) {
            const uint n = AT_MOST(256ul, row_end - row);
            uint n_listed = 0;
            for (uint j = 0; j < n; ++j) {
                y[row + j] = ZERO;
                listed[n_listed] = j;
                n_listed += indptr[row + j + 1] > indptr[row + j];
            }
            for (uint j = 0; j < n_listed; ++j) {
                const ulong r = row + listed[j], next = indptr[r + 1];
                y[r] = row_sum_1(indptr[r], AT_MOST(next, part_end), MATRIX);
            }
            row += n;
        }
    }
% endif
    for (; row < row_end; ++row) {
        const ulong next = indptr[row + 1], end = AT_MOST(next, part_end);
        update(SCALE_ARGUMENTS y + row, row_sum_1(k, end, MATRIX));
        k = end;
    }
}
