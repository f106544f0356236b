<%doc>
For each row of C = A @ B: the number of its intermediate products, and its bin. For all rows: the totals at positions FOUND_...
With `teams` a work-group also counts the distinct columns of its first row, if that row has at most `sampled` products: a
sample of the ratio of products to entries of C. Work-groups of one work-item sample a few of their rows; a sampled row with the
columns of the row before, or with these columns plus one, counts as empty.

Bins are data. `limits` holds three numbers per bin, UINT_MAX for no limit: the most products, the longest row of A and the
widest span of columns. A row goes to the first bin whose limits all hold; the last bin has none. starts[b] is the first bin
for rows whose number of products has b bits. The span of a row of C reaches from its first column, rounded down to a multiple
of 32, to its last; it is computed only if no bin before the first one with a limit of spans takes the row.

Source        the analysis of Dalton, Olson and Bell, Section 3.1; bins as in Liu et al., Register-Aware SpGEMM, Section 3.4;
              spans as in spECK (Parger et al., 2020)
Index space   `teams`: any number of work-groups; lanes, a power of two, take a row, the work-group a row of more than `long`
              entries. Else any number of work-items, each with rows in strides, see launch.spread
Inputs        columns of A in any order; bins: 33 `starts`, and `limits` of n_bins bins, MAX_BINS at most, of which the first
              `spanless` have no limit of spans; totals: FOUND_BINS + n_bins zeros
Output        products[n_rows], at most UINT_MAX, and bin[n_rows]; totals: products and the bound of C's entries (the sum of
              min(products, columns, span if computed)) in two halves each; the most products of a row and the longest row of
              A, at most UINT_MAX; products and entries of the sample; from FOUND_BINS on the number of rows of each bin
Local memory  `work_group` numbers of 64 bits and FOUND_BINS + MAX_BINS of 32; with `teams`: a queue of the rows that the whole
              work-group takes, and a table of `2 * sampled` columns. None for work-groups of one work-item without `teams`, the
              plain kernel, which has private arrays instead
Result        exact: integers are added in any order
</%doc>
<%
    plain = work_group == 1 and not teams
    shared = 8 if work_group % 8 == 0 else 1  # work-items to a row of B in the sample
%>\
## Add a number to one of the work-group's totals.
<%def name="count_seen(at, n)">\
${f"group_totals[{at}] += {n}" if plain else f"atomic_add(group_totals + {at}, {n})"};\
</%def>\
## A 64-bit sum by 32-bit atomics: the work-item whose addition overflows the low half adds the carry to the high half.
<%def name="add_halves(sum, low, high)">\
        {
            const uint low = (uint)${sum}, before = atomic_add(totals + ${low}, low);
            atomic_add(totals + ${high}, (uint)(${sum} >> 32) + (before + low < before));
        }
</%def>\
## Sum the products of a row's entries of A from k on, in steps; unrolled, so that several loads are in flight.
<%def name="count_products(step, unrolled, indent)">\
${indent}for (; k < end; k += ${unrolled} * ${step}) {
% for u in range(unrolled):
${indent}    const bool there_${u} = k + ${u} * ${step} < end;
${indent}    const I of_b_${u} = there_${u} ? a_indices[k + ${u} * ${step}] : 0;
% endfor
% for u in range(unrolled):
${indent}    sum += there_${u} ? (ulong)(b_indptr[of_b_${u} + 1] - b_indptr[of_b_${u}]) : 0;
% endfor
${indent}}
</%def>\
## Find the first and last column of a row of C, by the row's entries of A from k on, in steps.
<%def name="find_span(step, indent)">\
${indent}for (; k < end; k += ${step}) {
${indent}    const I column = a_indices[k], from = b_indptr[column], to = b_indptr[column + 1];
${indent}    if (from < to) {
${indent}        first = min(first, (long)b_indices[from]);
${indent}        last = max(last, (long)b_indices[to - 1]);
${indent}    }
${indent}}
</%def>\
## Store the number of products and the bin of a row, and count the row in the totals of the work-group.
<%def name="note(indent)">\
${indent}products[row] = row_products;
${indent}bin[row] = taker;
${indent}total += sum;
${indent}bound += min(sum, width);
${indent}most_products = max(most_products, row_products);
${indent}longest = max(longest, entries);
${indent}if (taker != last_taker) {
${indent}    if (in_a_row)
${indent}        ${count_seen("FOUND_BINS + last_taker", "in_a_row")}
${indent}    last_taker = taker;
${indent}    in_a_row = 0;
${indent}}
${indent}++in_a_row;
</%def>\
## The width of a row's span of columns; all columns of B for a row without products.
<%def name="width_of_span()">\
last < 0 ? n_columns : min(n_columns, (ulong)(last - (first & ~31l)) + 1)\
</%def>\
% if not plain:
#define WORK_GROUP ${work_group}
#include "group.cl"
% endif
% if teams:
#include "lanes_u64.cl"
% endif

uint clamped(ulong v)
{
    return (uint)min(v, (ulong)UINT_MAX);
}

// Return the number of the first bin (class of rows), from `i` up to `end`, that takes a row; `end` or more if none takes it.
uint next_taker(global const uint *limits, uint i, uint end, uint products, uint entries, uint width)
{
    while (i < end && (products > limits[3 * i] || entries > limits[3 * i + 1] || width > limits[3 * i + 2]))
        ++i;
    return i;
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows,
% if teams:
    const uint lanes, const uint long_row,
% else:
    const ulong stride, const ulong step, const ulong rows_of_item,
% endif
    const ulong n_columns, global const uint *restrict bins, const uint n_bins, const uint spanless,
    global const I *restrict a_indptr, global const I *restrict a_indices,
    global const I *restrict b_indptr, global const I *restrict b_indices,
    global uint *restrict products, global I *restrict bin, global uint *restrict totals)
{
    global const uint *const starts = bins, *const limits = bins + 33;
% if plain:
    uint group_totals[FOUND_BINS + MAX_BINS], table[${2 * sampled}];
    uint sampled_products = 0, sampled_entries = 0;
    const ulong every = max(1ul, rows_of_item / ${rows_of_sample});
% else:
    local uint group_totals[FOUND_BINS + MAX_BINS];
    SHARED long box[${work_group}];
% endif
% if teams:
    local ulong waiting[${work_group}];
    local uint n_waiting, n_distinct, table[${2 * sampled}];
% endif
    const uint me = get_local_id(0);
    for (uint i = me; i < FOUND_BINS + n_bins; i += ${work_group})
        group_totals[i] = 0;
% if teams:
    if (me == 0)
        n_waiting = n_distinct = 0;
    for (uint i = me; i < ${2 * sampled}; i += ${work_group})
        table[i] = UINT_MAX;
% endif
% if not plain:
    barrier(CLK_LOCAL_MEM_FENCE);
% endif

    ulong total = 0, bound = 0;
    // One addition to a bin's number of rows counts successive rows of a work-item that go to the same bin (class of rows).
    uint most_products = 0, longest = 0, last_taker = 0, in_a_row = 0;
% if teams:
    const ulong rows_of_group = ${work_group} / lanes;
    for (ulong base = get_group_id(0) * rows_of_group; base < n_rows; base += get_num_groups(0) * rows_of_group) {
        {
            const ulong row = base + me / lanes;
            const uint lane = me % lanes;
            const ulong begin = row < n_rows ? a_indptr[row] : 0, end = row < n_rows ? a_indptr[row + 1] : 0;
            const uint entries = clamped(end - begin);
            const bool waits = entries > long_row;
            if (waits && lane == 0)
                waiting[atomic_inc(&n_waiting)] = row;
            ulong sum = 0, k = waits ? end : begin + lane;
${count_products("lanes", 4, "            ")}\
#if LANE_WIDTH > 1
            for (uint m = 1; m < lanes; m *= 2)
                sum += lanes_xor_u64(sum, m);
#endif
            const uint row_products = clamped(sum);
            uint taker = next_taker(limits, starts[32 - clz(row_products)], spanless, row_products, entries, 0);
            ulong width = n_columns;
            if (spanless < n_bins) {
                const bool spans = taker >= spanless;
                long first = LONG_MAX, last = -1;
                k = waits || !spans ? end : begin + lane;
${find_span("lanes", "                ")}\
#if LANE_WIDTH > 1
                for (uint m = 1; m < lanes; m *= 2) {
                    first = min(first, (long)lanes_xor_u64((ulong)first, m));
                    last = max(last, (long)lanes_xor_u64((ulong)last, m));
                }
#endif
                width = ${width_of_span()};
                if (spans)
                    taker = next_taker(limits, taker, n_bins, row_products, entries, clamped(width));
            }
            if (row < n_rows && !waits && lane == 0) {
${note("                ")}\
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint n = n_waiting;
        for (uint i = 0; i < n; ++i) {
            const ulong row = waiting[i], begin = a_indptr[row], end = a_indptr[row + 1];
            const uint entries = clamped(end - begin);
            ulong sum = 0, k = begin + me;
${count_products(work_group, 1, "            ")}\
            sum = (ulong)group_reduce_add(box, (long)sum);
            const uint row_products = clamped(sum);
            uint taker = next_taker(limits, starts[32 - clz(row_products)], spanless, row_products, entries, 0);
            ulong width = n_columns;
            if (spanless < n_bins) {
                const bool spans = taker >= spanless;
                long first = LONG_MAX, last = -1;
                k = spans ? begin + me : end;
${find_span(work_group, "                ")}\
                first = group_reduce_min(box, first);
                last = -group_reduce_min(box, -last);
                width = ${width_of_span()};
                if (spans)
                    taker = next_taker(limits, taker, n_bins, row_products, entries, clamped(width));
            }
            if (me == 0) {
${note("                ")}\
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me == 0)
            n_waiting = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% else:
    ulong rows_left = rows_of_item;
    for (ulong row = get_global_id(0) * stride; row < n_rows && rows_left; row += step, --rows_left) {
        const ulong begin = a_indptr[row], end = a_indptr[row + 1];
        const uint entries = clamped(end - begin);
        ulong sum = 0, k = begin;
${count_products(1, 1, "        ")}\
        const uint row_products = clamped(sum);
        uint taker = next_taker(limits, starts[32 - clz(row_products)], spanless, row_products, entries, 0);
        ulong width = n_columns;
        if (taker >= spanless) {
            long first = LONG_MAX, last = -1;
            k = begin;
${find_span(1, "            ")}\
            width = ${width_of_span()};
            taker = next_taker(limits, taker, n_bins, row_products, entries, clamped(width));
        }
${note("        ")}\
% if plain:
        if ((rows_of_item - rows_left) % every == 0 && row_products && row_products <= ${sampled}) {
            sampled_products += row_products;
            bool repeats = row && begin - a_indptr[row - 1] == end - begin;
            const I shift = repeats ? a_indices[begin] - a_indices[a_indptr[row - 1]] : 0;
            for (ulong a = begin; a < end && repeats; ++a) {
                const I of_b = a_indices[a], before = a_indices[a - (end - begin)];
                repeats = of_b - before == shift;
                if (repeats && shift) {
                    const I from = b_indptr[of_b], from_before = b_indptr[before], length = b_indptr[of_b + 1] - from;
                    repeats = shift == 1 && length == b_indptr[before + 1] - from_before;
                    for (I j = 0; j < length && repeats; ++j)
                        repeats = b_indices[from + j] - b_indices[from_before + j] == 1;
                }
            }
            if (!repeats) {
                for (uint i = 0; i < ${2 * sampled}; ++i)
                    table[i] = UINT_MAX;
                for (ulong a = begin; a < end; ++a)
                    for (I j = b_indptr[a_indices[a]]; j < b_indptr[a_indices[a] + 1]; ++j) {
                        const uint column = (uint)b_indices[j];
                        uint slot = column * 2654435769u >> ${33 - (2 * sampled).bit_length()};
                        while (table[slot] != UINT_MAX && table[slot] != column)
                            slot = (slot + 1) % ${2 * sampled};
                        sampled_entries += table[slot] == UINT_MAX;
                        table[slot] = column;
                    }
            }
        }
% endif
    }
% endif
% if plain:
    atomic_add(totals + FOUND_SAMPLED, sampled_products);
    atomic_add(totals + FOUND_SAMPLED_ENTRIES, sampled_entries);
% endif
    if (in_a_row)
        ${count_seen("FOUND_BINS + last_taker", "in_a_row")}
% if plain:
    group_totals[FOUND_MAX_PRODUCTS] = most_products;
    group_totals[FOUND_LONGEST_ROW] = longest;
% else:
    atomic_max(group_totals + FOUND_MAX_PRODUCTS, most_products);
    atomic_max(group_totals + FOUND_LONGEST_ROW, longest);
% endif

% if teams:
    // The sampled row of C is the work-group's first; the hash table of its columns is never full, with two slots to a product.
    const ulong sample = get_group_id(0) * rows_of_group;
    const ulong sample_begin = sample < n_rows ? a_indptr[sample] : 0, sample_end = sample < n_rows ? a_indptr[sample + 1] : 0;
    long sampled = 0;
    for (ulong k = sample_begin + me; k < sample_end; k += ${work_group})
        sampled += (long)(b_indptr[a_indices[k] + 1] - b_indptr[a_indices[k]]);
    sampled = group_reduce_add(box, sampled);
    if (sampled <= ${sampled})
        for (ulong k = sample_begin + me / ${shared}; k < sample_end; k += ${work_group // shared}) {
            const I of_a = a_indices[k];
            const ulong of_a_end = b_indptr[of_a + 1];
            for (ulong at = b_indptr[of_a] + me % ${shared}; at < of_a_end; at += ${shared}) {
                const uint column = (uint)b_indices[at];
                uint slot = column * 2654435769u >> ${33 - (2 * sampled).bit_length()}, occupant;
                while ((occupant = atomic_cmpxchg(table + slot, UINT_MAX, column)) != UINT_MAX && occupant != column)
                    slot = (slot + 1) % ${2 * sampled};
                if (occupant == UINT_MAX)
                    atomic_inc(&n_distinct);
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0 && sampled <= ${sampled}) {
        atomic_add(totals + FOUND_SAMPLED, (uint)sampled);
        atomic_add(totals + FOUND_SAMPLED_ENTRIES, n_distinct);
    }
% endif
% if not plain:
    total = (ulong)group_reduce_add(box, (long)total);
    bound = (ulong)group_reduce_add(box, (long)bound);
% endif
    if (me == 0) {
${add_halves("total", "FOUND_PRODUCTS_LOW", "FOUND_PRODUCTS_HIGH")}\
${add_halves("bound", "FOUND_BOUND_LOW", "FOUND_BOUND_HIGH")}\
        atomic_max(totals + FOUND_MAX_PRODUCTS, group_totals[FOUND_MAX_PRODUCTS]);
        atomic_max(totals + FOUND_LONGEST_ROW, group_totals[FOUND_LONGEST_ROW]);
    }
    for (uint i = FOUND_BINS + me; i < FOUND_BINS + n_bins; i += ${work_group})
        if (group_totals[i])
            atomic_add(totals + i, group_totals[i]);
}
