<%doc>
For each row of C = A @ B: how many intermediate products it has, and which rule takes it. For all: the number of products, the
most products of a row, the longest row of A, how many rows each rule takes, and a bound of the entries of C: the sum over rows of
min(products, columns, span if a rule asks for it). With `long` rows each work-group also counts the distinct columns of its first
row, if that has at most `sampled` products: a sample of how many products make an entry of C.

Rules are tried in order; the first whose most products, longest row of A and widest span of columns all hold takes the row. The
last takes any. Spans are found if a rule has one (`spans`). The span of a row of C is from its first column, rounded down to a
multiple of 32, to its last.

Source        the analysis of Dalton, Olson and Bell, Section 3.1; bins as in Liu et al., Register-Aware SpGEMM, Section 3.4;
              spans as in spECK (Parger et al., 2020)
Index space   any number of work-groups; `lanes` work-items take a row. Without `long` any number of work-items, each with rows in
              strides, see launch.spread
Inputs        columns of A in any order; found: first_rule + len(rules) zeros
Output        products[n_rows], 2^32 - 1 where there are more, and rule[n_rows]; found: low and high half of the sum of products;
              the most products of a row and the longest row of A, 2^32 - 1 where there are more; both halves of the bound; with
              `long` of the sample, products and entries; rows of each rule
Local memory  `work_group` numbers of 64 bits and first_rule + len(rules) of 32; with `long`: rows of more entries than that,
              which the whole work-group takes; a table of `2 * sampled` columns
Result        exact: integers are added in any order
</%doc>
<%
    first_rule = 8 if long else 6
    counters = [f"taken_{i}" for i in range(len(rules))]
    shared = 8 if work_group % 8 == 0 else 1  # work-items to a row of B in the sample
    exchanged = [1 << bit for bit in range(lanes.bit_length() - 1)]
    # What comes before the first rule that asks for spans, but for what another of these covers.
    before = dict.fromkeys(rules[: next((i for i, (_, _, span) in enumerate(rules) if span >= 0), 0)])
    def covered(limits):
        return any(all(most < 0 or 0 <= mine <= most for most, mine in zip(each, limits)) for each in before if each != limits)
    spanless = [limits for limits in before if not covered(limits)]
%>\
## A sum of 64 bits by atomics of 32: who makes the low half overflow carries.
<%def name="add_halves(sum, place)">\
        {
            const uint low = (uint)${sum}, before = atomic_add(found + ${place}, low);
            atomic_add(found + ${place + 1}, (uint)(${sum} >> 32) + (before + low < before));
        }
</%def>\
## Whether a rule takes a row of sum products, length entries of A and a span.
<%def name="holds(limits)">\
${" && ".join(f"{what} <= {limit}ul" for what, limit in zip(("sum", "length", "span"), limits) if limit >= 0)}\
</%def>\
## Products of the entries of A from k on, in steps, some at a time: their loads do not wait for one another.
<%def name="count_products(step, unrolled, indent)">\
${indent}for (; k < end; k += ${unrolled * step}) {
% for u in range(unrolled):
${indent}    const bool there_${u} = k + ${u * step} < end;
${indent}    const I of_b_${u} = there_${u} ? a_indices[k + ${u * step}] : 0;
% endfor
% for u in range(unrolled):
${indent}    sum += there_${u} ? (ulong)(b_indptr[of_b_${u} + 1] - b_indptr[of_b_${u}]) : 0;
% endfor
${indent}}
</%def>\
## The first and last column of the entries of A from k on, in steps, where no rule takes the row whatever its span is.
<%def name="find_span(step, indent)">\
${indent}if (!(${" || ".join(f"({capture(holds, limits).strip()})" for limits in spanless) or "false"}))
${indent}    for (; k < end; k += ${step}) {
${indent}        const I column = a_indices[k], from = b_indptr[column], to = b_indptr[column + 1];
${indent}        if (from < to) {
${indent}            first = min(first, (long)b_indices[from]);
${indent}            last = max(last, (long)b_indices[to - 1]);
${indent}        }
${indent}    }
</%def>\
## Write down what was found of a row, and count it.
<%def name="note(indent)">\
% if spans:
${indent}// Beyond all columns where it was not looked at.
${indent}const ulong span = sum ? (ulong)(last - (first & ~31l)) + 1 : 0;
% endif
${indent}uint taker = ${len(rules) - 1};
% for i, limits in reversed(list(enumerate(rules[:-1]))):
${indent}if (${holds(limits)})
${indent}    taker = ${i};
% endfor
${indent}products[row] = (uint)min(sum, (ulong)UINT_MAX);
${indent}rule[row] = taker;
${indent}total += sum;
${indent}bound += min(sum, ${"min(n_columns, span)" if spans else "n_columns"});
${indent}most = max(most, (uint)min(sum, (ulong)UINT_MAX));
${indent}longest = max(longest, (uint)min(length, (ulong)UINT_MAX));
% for i, counter in enumerate(counters):
${indent}${counter} += taker == ${i};
% endfor
</%def>\
#define WORK_GROUP ${work_group}
#include "group.cl"
% if lanes > 1:
#include "lanes_u64.cl"
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows,${"" if long else " const ulong stride, const ulong step, const ulong rows_of_item,"}
    const ulong n_columns,
    global const I *restrict a_indptr, global const I *restrict a_indices, global const I *restrict b_indptr,
% if long or spans:
    global const I *restrict b_indices,
% endif
    global uint *restrict products, global I *restrict rule, global uint *restrict found)
{
    local uint seen[${first_rule + len(rules)}];
    local long box[${work_group}];
% if long:
    local ulong waiting[${work_group // lanes}];
    local uint n_waiting, n_distinct, table[${2 * sampled}];
% endif
    const uint me = get_local_id(0);
    for (uint i = me; i < ${first_rule + len(rules)}; i += ${work_group})
        seen[i] = 0;
% if long:
    if (me == 0)
        n_waiting = n_distinct = 0;
    for (uint i = me; i < ${2 * sampled}; i += ${work_group})
        table[i] = UINT_MAX;
% endif
    barrier(CLK_LOCAL_MEM_FENCE);

    ulong total = 0, bound = 0;
    uint most = 0, longest = 0, ${", ".join(f"{counter} = 0" for counter in counters)};
% if long:
    for (ulong base = get_group_id(0) * ${work_group // lanes}ul; base < n_rows; base += get_num_groups(0) * ${work_group // lanes}ul) {
        {
            const ulong row = base + me / ${lanes};
            const uint lane = me % ${lanes};
            const ulong begin = row < n_rows ? a_indptr[row] : 0, end = row < n_rows ? a_indptr[row + 1] : 0;
            const ulong length = end - begin;
            const bool waits = length > ${long};
            if (waits && lane == 0)
                waiting[atomic_inc(&n_waiting)] = row;
            ulong sum = 0, k = waits ? end : begin + lane;
${count_products(lanes, 4, "            ")}\
% for m in exchanged:
            sum += lanes_xor_u64(sum, ${m});
% endfor
% if spans:
            long first = LONG_MAX, last = -1;
            k = waits ? end : begin + lane;
${find_span(lanes, "            ")}\
% for m in exchanged:
            first = min(first, (long)lanes_xor_u64((ulong)first, ${m}));
            last = max(last, (long)lanes_xor_u64((ulong)last, ${m}));
% endfor
% endif
            if (row < n_rows && !waits && lane == 0) {
${note("                ")}\
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint n = n_waiting;
        for (uint i = 0; i < n; ++i) {
            const ulong row = waiting[i], begin = a_indptr[row], end = a_indptr[row + 1], length = end - begin;
            ulong sum = 0, k = begin + me;
${count_products(work_group, 1, "            ")}\
            sum = (ulong)group_reduce_add(box, (long)sum);
% if spans:
            long first = LONG_MAX, last = -1;
            k = begin + me;
${find_span(work_group, "            ")}\
            first = group_reduce_min(box, first);
            last = -group_reduce_min(box, -last);
% endif
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
    ulong left = rows_of_item;
    for (ulong row = get_global_id(0) * stride; row < n_rows && left; row += step, --left) {
        const ulong begin = a_indptr[row], end = a_indptr[row + 1], length = end - begin;
        ulong sum = 0, k = begin;
${count_products(1, 1, "        ")}\
% if spans:
        long first = LONG_MAX, last = -1;
        k = begin;
${find_span(1, "        ")}\
% endif
${note("        ")}\
    }
% endif
    atomic_max(seen + 2, most);
    atomic_max(seen + 3, longest);
% for i, counter in enumerate(counters):
    if (${counter})
        atomic_add(seen + ${first_rule + i}, ${counter});
% endfor

% if long:
    // The sample: the first row of the work-group. The table is never full, as it has twice as many slots as there are products.
    const ulong sample = get_group_id(0) * ${work_group // lanes}ul;
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
                uint slot = column * 2654435769u >> ${33 - (2 * sampled).bit_length()}, there;
                while ((there = atomic_cmpxchg(table + slot, UINT_MAX, column)) != UINT_MAX && there != column)
                    slot = (slot + 1) % ${2 * sampled};
                if (there == UINT_MAX)
                    atomic_inc(&n_distinct);
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0 && sampled <= ${sampled}) {
        atomic_add(found + 6, (uint)sampled);
        atomic_add(found + 7, n_distinct);
    }
% endif
    total = (ulong)group_reduce_add(box, (long)total);
    bound = (ulong)group_reduce_add(box, (long)bound);
    if (me == 0) {
${add_halves("total", 0)}\
${add_halves("bound", 4)}\
        atomic_max(found + 2, seen[2]);
        atomic_max(found + 3, seen[3]);
    }
    for (uint i = ${first_rule} + me; i < ${first_rule + len(rules)}; i += ${work_group})
        if (seen[i])
            atomic_add(found + i, seen[i]);
}
