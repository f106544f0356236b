<%doc>
Rows of C with at most `products` products by a work-item each: expanded, sorted by column in its registers, `registers` at a
time, and contracted; if `products` is twice that, while the two sorted halves are merged.

Symbolic: columns alone are sorted, and distinct ones counted. Else a word is a column with the number of its product behind it.

Source        Dalton, Olson and Bell, Section 3.3: "one work-item with a sorting network", and permutations packed into the free
              bits
Index space   a work-item to a row
Inputs        see spgemm.cl; rows with at most `products` products and as many entries of A
Local memory  `products` words of a work-item's own, and as many bytes outside the symbolic phase
Result        deterministic: products of a column are added in the order of A's row
</%doc>
<%namespace name="sorting" file="primitives/sort_network"/>\
typedef ${"ulong" if word_bytes == 8 else "uint"} WORD;
#define NO_WORD ${"ULONG_MAX" if word_bytes == 8 else "UINT_MAX"}
#include "spgemm.cl"
${sorting.comparators(False)}
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    local WORD words[${products * work_group}];
% if not symbolic:
    local uchar entries[${products * work_group}];
% endif
    const uint me = get_local_id(0);
    const ulong slot = get_global_id(0);
    if (slot >= n_rows)
        return;
    const ulong row = SPGEMM_ROW(slot);
    const I begin = a_indptr[row];
    const uint length = (uint)(a_indptr[row + 1] - begin);
    // A work-item has words, one to a product, of its own: the word of its own number, and every ${work_group}th from there on.
    uint n = 0, starts = 0;
    for (uint k = 0; k < length; ++k) {
        const I column = a_indices[begin + k], end = b_indptr[column + 1];
        starts |= n < 32 ? 1u << n : 0;
        for (I at = b_indptr[column]; at < end; ++at) {
            words[n * ${work_group} + me] = (WORD)b_indices[at]${f" << {bits} | n" if bits else ""};
% if not symbolic:
            entries[n * ${work_group} + me] = (uchar)k;
% endif
            ++n;
        }
    }
% if products > registers:
    for (uint base = 0; base < n; base += ${registers}) {
% else:
    const uint base = 0;
    {
% endif
% for u in range(registers):
        WORD word_${u} = base + ${u} < n ? words[(base + ${u}) * ${work_group} + me] : NO_WORD;
% endfor
        const uint lanes = 1;
${sorting.network(registers, 1, 1, work_group, False)}\
% for u in range(registers):
        words[(base + ${u}) * ${work_group} + me] = word_${u};
% endfor
    }

% if symbolic:
    uint count = 0;
% else:
    C_INDEX place = c_indptr[row];
    T sum = ZERO;
% endif
    // Two sorted runs of words, one to a product, are merged: the words before number ${registers}, and the words from there on.
    const uint last_a = min(n, ${registers}u);
    uint a = 0, b = ${registers};
    WORD word_a = n > 0 ? words[me] : NO_WORD, word_b = n > ${registers} ? words[${registers * work_group} + me] : NO_WORD, before = 0;
    for (uint i = 0; i < n; ++i) {
        const bool take_b = word_b < word_a;
        const WORD word = take_b ? word_b : word_a;
        if (take_b)
            word_b = ++b < n ? words[b * ${work_group} + me] : NO_WORD;
        else
            word_a = ++a < last_a ? words[a * ${work_group} + me] : NO_WORD;
        const bool begins = i == 0 || word >> ${bits} != before >> ${bits};
        before = word;
% if symbolic:
        count += begins;
% else:
        if (begins) {
            if (i > 0)
                c_data[place++] = sum;
% if not values_only:
            c_indices[place] = (C_INDEX)(word >> ${bits});
% endif
        }
        const uint number = (uint)word & ${2**bits - 1}, k = entries[number * ${work_group} + me];
        // The place of a product in its row of B: the product's number less the number of the row's first product.
        const uint first = 31 - clz(starts & (UINT_MAX >> (31 - number)));
        const I at = b_indptr[a_indices[begin + k]] + (I)(number - first);
        const T term = MULTIPLY(from_a(a_data[begin + k]), from_x(b_data[at]));
        sum = begins ? term : ADD(sum, term);
% endif
    }
% if symbolic:
    counts[row] = count;
% else:
    if (n > 0)
        c_data[place] = sum;
% endif
}
