<%doc>
One pass over vectors: its lines compute entries of some vectors from entries of others and from scalars, and each work-group
writes partial sums over its entries. A later pass finishes the sums that it needs: each of its work-groups adds up all partial
sums.

Source        the recurrences are those of the methods that the passes belong to; their modules name them
Index space   a chunk of adjacent entries to each work-group, its work-items side by side; as many work-groups in all passes of a
              method
Inputs        scalars: the method's scalars, by place; sums: the partial sums, by sum and work-group; the pass uses one part of
              both. Scalars for the host are written from told_at on. Vectors of n entries, `span` of them to a work-group
Local memory  work_group * sizeof(T) for each eight sums where lanes do not reach over the work-group
Result        deterministic for a number of work-groups
</%doc>
#define MAX_LANES ${work_group}
#include "lanes_t.cl"
<%def name="entry(vector_pass, u, place, sums_at_once)">\
        {
% for vector in vector_pass.reads + vector_pass.updates:
            T ${vector} = ${vector}_${u};
% endfor
% for vector in vector_pass.writes:
            T ${vector};
% endfor
% if vector_pass.numbered:
            const ulong number = ${place};
% endif
% for line in vector_pass.lines:
            ${line}
% endfor
% for vector in vector_pass.updates + vector_pass.writes:
            ${"if (active) " if vector_pass.guarded else ""}${vector}_at[${place}] = ${vector};
% endfor
% for sum, expression in vector_pass.sums:
            ${sum}_${u % sums_at_once} = ADD(${sum}_${u % sums_at_once}, ${expression});
% endfor
        }
</%def>\
<%
    reads, updates, writes = vector_pass.reads, vector_pass.updates, vector_pass.writes
    lists = [[item[0] for item in items] for items in (totals, sums)]
    boxes = -(-max(map(len, lists)) // 8)
    # In larger work-groups other work-items hide the latency of additions, and registers are few.
    sums_at_once = unroll if work_group == 1 else 1
%>\
<%def name="finish_sums(names, suffix)">\
% if needs_box and names:
    // A sum over a work-group: sub-groups' lanes add their terms, then each work-item adds the sub-groups' sums, in fixed order.
#if LANE_WIDTH >= 8
% for sum in names:
    ${sum}${suffix} = lanes_within(${sum}${suffix});
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me % LANE_WIDTH == 0) {
% for sum in names:
        box[${loop.index} * (${work_group} / LANE_WIDTH) + me / LANE_WIDTH] = ${sum}${suffix};
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% for sum in names:
    ${sum}${suffix} = box[${loop.index} * (${work_group} / LANE_WIDTH)];
    for (uint other = 1; other < ${work_group} / LANE_WIDTH; ++other)
        ${sum}${suffix} = ADD(${sum}${suffix}, box[${loop.index} * (${work_group} / LANE_WIDTH) + other]);
% endfor
#else
% for sum in names:
    ${sum}${suffix} = lanes_reduce(box, ${sum}${suffix}, ${work_group});
% endfor
#endif
% else:
% for sum in names:
    ${sum}${suffix} = lanes_reduce(box, ${sum}${suffix}, ${work_group});
% endfor
% endif
</%def>\
<%def name="load()">\
% for vector in reads + updates:
% for u in range(unroll):
        ${vector}_${u} = i + ${u * work_group} < end ? ${vector}_at[i + ${u * work_group}] : ZERO;
% endfor
% endfor
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong span, const ulong part, const ulong told_at,
    global T *all_scalars, global T *all_sums${"," if reads + updates + writes else ")"}
% for vector in reads:
    global const T *restrict ${vector}_at${")" if loop.last and not updates + writes else ","}
% endfor
% for vector in updates + writes:
    global T *restrict ${vector}_at${")" if loop.last else ","}
% endfor
{
% if needs_box:
    local T box[${work_group * max(boxes, 1)}];
% else:
    local T *box = 0;
% endif
    const uint me = get_local_id(0);
    const ulong n_groups = get_num_groups(0);
    global T *scalars = all_scalars + part * ${n_scalars}, *sums = all_sums + part * ${n_sums} * n_groups;
    const ulong begin = get_group_id(0) * span, end = min(n, begin + span);
    ulong i = begin + me;
% for sum, at in totals:
    T ${sum} = me < n_groups ? sums[${at} * n_groups + me] : ZERO;
% endfor
% if work_group > 1:
    // The loads of the vectors' first entries are in flight while the sums of earlier passes are finished.
% for vector in reads + updates:
    T ${", ".join(f"{vector}_{u}" for u in range(unroll))};
% endfor
${load()}\
% endif
% for scalar, at in takes:
    const T ${scalar} = scalars[${at}];
% endfor
% for sum, at in totals:
    for (ulong group = me + ${work_group}; group < n_groups; group += ${work_group})
        ${sum} = ADD(${sum}, sums[${at} * n_groups + group]);
% endfor
${finish_sums(lists[0], "")}\
% for line in vector_pass.first:
    ${line}
% endfor
% for sum, _, _ in sums:
    T ${", ".join(f"{sum}_{u} = ZERO" for u in range(sums_at_once))};
% endfor
% if work_group > 1:
    while (i < end) {
% for u in range(unroll):
        if (i + ${u * work_group} < end)
${entry(vector_pass, u, f"i + {u * work_group}", sums_at_once)}\
% endfor
        i += ${unroll * work_group};
${load()}\
    }
% else:
    for (; i + ${unroll - 1} < end; i += ${unroll}) {
% for vector in reads + updates:
        const T ${", ".join(f"{vector}_{u} = {vector}_at[i + {u}]" for u in range(unroll))};
% endfor
% for u in range(unroll):
${entry(vector_pass, u, f"i + {u}", sums_at_once)}\
% endfor
    }
    for (; i < end; i++) {
% for vector in reads + updates:
        const T ${vector}_0 = ${vector}_at[i];
% endfor
${entry(vector_pass, 0, "i", sums_at_once)}\
    }
% endif
% for sum, at, _ in sums:
% for u in range(1, sums_at_once):
    ${sum}_0 = ADD(${sum}_0, ${sum}_${u});
% endfor
% endfor
${finish_sums(lists[1], "_0")}\
% for sum, at, _ in sums:
    if (me == 0)
        sums[${at} * n_groups + get_group_id(0)] = ${sum}_0;
% endfor
    if (get_global_id(0) == 0) {
% for _, at, expression in keeps:
        scalars[${at}] = ${expression};
% endfor
% for at, expression in tells:
        all_scalars[told_at + ${at}] = ${expression};
% endfor
    }
}
