<%doc>
y[row] = alpha * A[row] @ x + beta * y[row], one work-item to a long chunk of adjacent rows: the kernel for devices whose
work-items are the iterations of a core's loop. A chunk's sum of a row that an earlier chunk began goes to partial[chunk].

A row is summed entry by entry, or several entries at a time, one of `widths`: by vectors, `masked`, with a mask for its end, one
block that a core predicts, where a loop over single entries is mispredicted at each row's end; or by as many sums, and its end
entry by entry. How is chosen for each chunk by its mean row length.

Source        own; chunks of equal rows + entries after Merrill and Garland, SC 2016, Section 4 (their CPU kernel)
Index space   n_parts work-items
Inputs        part_row, part_entry: n_parts + 1 each, of partition.mako; columns in any order, duplicates allowed; rows may be
              empty
Local memory  none
Result        deterministic: a row is summed in the order that the chunks and the mean row length give
</%doc>
<%
    def halves(width):
        while width > 1:
            width //= 2
            yield width
%>\
#include "spmv.cl"
#include "unaligned.cl"
#include "vectors.cl"

// Data and columns are asked for this far ahead: their stream begins anew at each row, which hides it from the hardware.
% if ahead:
    #define PREFETCH(k) PREFETCH_LINE(data + (k) + ${ahead}) PREFETCH_LINE(indices + (k) + ${ahead})
% else:
    #define PREFETCH(k)
% endif
#define ENTRIES_PARAMETERS \
    ulong k, const ulong end, \
    global const I *restrict indices, global const A_VALUE *restrict data, global const X_VALUE *restrict x
#define MATRIX indices, data, x

// The sum of the entries from k to end, one by one.
T row_sum_1(ENTRIES_PARAMETERS)
{
    T sum = ZERO;
    PREFETCH(k)
    for (; k < end; ++k)
        sum = ADD(sum, MULTIPLY(from_a(data[k]), LOAD_X(x + indices[k])));
    return sum;
}
% for n in sorted({min(width, longest) for width in widths if masked}):

% for type in dict.fromkeys((value, index)):
UNALIGNED(${type}, ${n})
% endfor
${value}${n} add_${n}(const ${value}${n} a, const ${value}${n} b) { return ${add}; }
${value}${n} multiply_${n}(const ${value}${n} a, const ${value}${n} b) { return ${multiply}; }
% endfor
% for width in () if masked else widths:

// The same by ${width} sums.
T row_sum_${width}(ENTRIES_PARAMETERS)
{
    T ${", ".join(f"sum_{i} = ZERO" for i in range(width))};
    for (; k + ${width} <= end; k += ${width}) {
        PREFETCH(k)
% for i in range(width):
        sum_${i} = ADD(sum_${i}, MULTIPLY(from_a(data[k + ${i}]), LOAD_X(x + indices[k + ${i}])));
% endfor
    }
    for (; k < end; ++k)
        sum_0 = ADD(sum_0, MULTIPLY(from_a(data[k]), LOAD_X(x + indices[k])));
% for half in halves(width):
% for i in range(half):
    sum_${i} = ADD(sum_${i}, sum_${i + half});
% endfor
% endfor
    return sum_0;
}
% endfor
% for width in widths if masked else ():
<%
    n = min(width, longest)
    parts = range(0, width, n)
%>
// The same, ${width} at a time; reads, and ignores, what follows up to entry end + ${width - 1}.
T row_sum_${width}(ENTRIES_PARAMETERS)
{
    const ${mask}${n} numbers = (${mask}${n})(${", ".join(str(i) for i in range(n))});
% for part in parts:
    ${value}${n} sums_${part} = (${value}${n})ZERO;
% endfor
    for (; k < end; k += ${width}) {
        PREFETCH(k)
        const ${mask}${n} left = (${mask}${n})(min(end - k, ${width}ul));
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
        const ulong end = min((ulong)indptr[row], part_end);
% if widths:
        partial[part] = end + ${widths[-1]} <= n_entries ? row_sum_${widths[-1]}(k, end, MATRIX) : row_sum_1(k, end, MATRIX);
% else:
        partial[part] = row_sum_1(k, end, MATRIX);
% endif
        k = end;
    }
    const float mean = row < row_end ? (float)(part_end - k) / (row_end - row) : 0;
% for width, from_mean in sorted(zip(widths, from_means), reverse=True):
    if (mean >= ${from_mean}f)
        // The rows at the matrix's end are left to what follows: reading past them would leave the arrays.
        for (; row < row_end && (ulong)indptr[row + 1] + ${width} <= n_entries; ++row) {
            const ulong end = min((ulong)indptr[row + 1], part_end);
            update(SCALE_ARGUMENTS y + row, row_sum_${width}(k, end, MATRIX));
            k = end;
        }
% endfor
% if not scaled:
    if (mean < 1) {
        // Mostly empty rows: the others are listed without a branch.
        uchar listed[256];
        while (row < row_end) {
            const uint n = min(256ul, row_end - row);
            uint n_listed = 0;
            for (uint j = 0; j < n; ++j) {
                y[row + j] = ZERO;
                listed[n_listed] = j;
                n_listed += indptr[row + j + 1] > indptr[row + j];
            }
            for (uint j = 0; j < n_listed; ++j) {
                const ulong r = row + listed[j];
                y[r] = row_sum_1(indptr[r], min((ulong)indptr[r + 1], part_end), MATRIX);
            }
            row += n;
        }
    }
% endif
    for (; row < row_end; ++row) {
        const ulong end = min((ulong)indptr[row + 1], part_end);
        update(SCALE_ARGUMENTS y + row, row_sum_1(k, end, MATRIX));
        k = end;
    }
}
