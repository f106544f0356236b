<%doc>
For each row of C = A @ B: how many intermediate products it has, and which rule takes it. For all: the number of products, the most
products of a row, the longest row of A, and how many rows each rule takes\
${"; and the sum of min(products, columns), which bounds the entries of C" if bounded else ""}.

Rules are tried in order; the first whose most products and longest row of A both hold takes the row. The last takes any.

Source        the analysis of Dalton, Olson and Bell, Section 3.1; bins as in Liu et al., Register-Aware SpGEMM, Section 3.4
Index space   ${"any number of work-items, each with rows in strides, see launch.spread" if lanes == 1 else f"n_rows * {lanes} work-items, {lanes} to a row"}
Inputs        columns of A in any order; found: ${4 + len(rules) + 2 * bounded} zeros
Output        products[n_rows], rule[n_rows]; found: low and high half of the sum of products; the most products of a row and the
              longest row of A, ${"2^32 - 1"} where there are more; rows of each rule${"; both halves of the bound" if bounded else ""}
Local memory  ${work_group} numbers of 64 bits and ${4 + len(rules)} of 32
Result        exact: integers are added in any order
</%doc>
## A sum of 64 bits by atomics of 32: who makes the low half overflow carries.
<%def name="add_halves(sum, place)">\
        const uint low = (uint)${sum};
        const uint before = atomic_add(found + ${place}, low);
        atomic_add(found + ${place + 1}, (uint)(${sum} >> 32) + (before + low < before));
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong stride, const ulong step, const ulong span,
% if bounded:
    const ulong n_columns,
% endif
    global const I *restrict a_indptr, global const I *restrict a_indices, global const I *restrict b_indptr,
    global ulong *restrict products, global I *restrict rule, global uint *restrict found)
{
    local uint seen[${4 + len(rules)}];
    local ulong box[${work_group}];
    const uint me = get_local_id(0), lane = me % ${lanes};
    for (uint i = me; i < ${4 + len(rules)}; i += ${work_group})
        seen[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    ulong total = 0${", bound = 0" if bounded else ""};
    uint most = 0, longest = 0, ${", ".join(f"taken_{i} = 0" for i in range(len(rules)))};
% if lanes == 1:
    ulong left = span;
    for (ulong row = get_global_id(0) * stride; row < n_rows && left; row += step, --left) {
% else:
    const ulong row = get_global_id(0) / ${lanes};
    {
% endif
        const bool active = row < n_rows;
        const ulong begin = active ? a_indptr[row] : 0, end = active ? a_indptr[row + 1] : 0;
        ulong sum = 0;
        for (ulong k = begin + lane; k < end; k += ${lanes}) {
            const I column = a_indices[k];
            sum += (ulong)(b_indptr[column + 1] - b_indptr[column]);
        }
% if lanes > 1:
        box[me] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0)
            for (uint i = 1; i < ${lanes}; ++i)
                sum += box[me + i];
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
        if (active && lane == 0) {
            const ulong length = end - begin;
            uint taker = ${len(rules) - 1};
% for i, (max_products, max_length) in reversed(list(enumerate(rules[:-1]))):
<% tests = [f"{what} <= {limit}ul" for what, limit in (("sum", max_products), ("length", max_length)) if limit >= 0] %>\
            if (${" && ".join(tests)})
                taker = ${i};
% endfor
            products[row] = sum;
            rule[row] = taker;
            total += sum;
% if bounded:
            bound += min(sum, n_columns);
% endif
            most = max(most, (uint)min(sum, (ulong)UINT_MAX));
            longest = max(longest, (uint)min(length, (ulong)UINT_MAX));
% for i in range(len(rules)):
            taken_${i} += taker == ${i};
% endfor
        }
    }
    atomic_max(seen + 2, most);
    atomic_max(seen + 3, longest);
% for i in range(len(rules)):
    if (taken_${i})
        atomic_add(seen + ${4 + i}, taken_${i});
% endfor

    box[me] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        for (uint i = 1; i < ${work_group}; ++i)
            total += box[i];
${add_halves("total", 0)}\
        atomic_max(found + 2, seen[2]);
        atomic_max(found + 3, seen[3]);
    }
    for (uint i = 4 + me; i < ${4 + len(rules)}; i += ${work_group})
        if (seen[i])
            atomic_add(found + i, seen[i]);
% if bounded:
    barrier(CLK_LOCAL_MEM_FENCE);
    box[me] = bound;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        for (uint i = 1; i < ${work_group}; ++i)
            bound += box[i];
${add_halves("bound", 4 + len(rules))}\
    }
% endif
}
