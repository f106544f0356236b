<%doc>
Iterations of a Krylov method on a system that one work-group holds: its passes over vectors and its products, one after another,
until it tells that nothing changes from then on. `sweep.mako` makes a kernel of each pass; here scalars and sums are in
registers, and the same in all work-items.

Source        the recurrences are those of the methods; their modules name them
Index space   one work-group; entries i, i + work_group, ... of all vectors belong to one work-item, and so do these rows
Inputs        as of `sweep.mako`, of one part; A, and M if there is one: the arrays of CSR, or a diagonal. At most count
              iterations are made, with products times alpha, and if the launch is the final one, the pass that tells how the
              last of them ended
Local memory  work_group * sizeof(T) for each eight sums where lanes do not reach over the work-group
Result        deterministic
</%doc>
<%namespace name="sweep" file="vectors/sweep"/>\
#define MAX_LANES ${work_group}
#include "lanes_t.cl"
<%!
    def index_type(matrices, name):
        return dict(matrices)[name]
%>\
<%def name="passed(of)">\
        {   // ${of.name}
% for scalar in of.takes:
            const T ${scalar} = scalar_${scalar};
% endfor
% for sum in of.totals:
            const T ${sum} = sum_${sum};
% endfor
% for line in of.first:
            ${line}
% endfor
% for sum, _ in of.sums:
            T ${sum}_0 = ZERO;
% endfor
            for (ulong i = me; i < n; i += ${work_group}) {
% for vector in of.reads + of.updates:
                const T ${vector}_0 = ${vector}_at[i];
% endfor
${sweep.entry(of, 0, "i", 1)}\
            }
${sweep.ended([sum for sum, _ in of.sums], "_0")}\
% for name, expression in of.keeps:
            const T new_${name} = ${expression};
% endfor
% for name, expression in of.tells:
            if (me == 0)
                all_scalars[told_at + ${told.index(name)}] = ${expression};
% endfor
% for name, _ in of.keeps:
            scalar_${name} = new_${name};
% endfor
% for sum, _ in of.sums:
            sum_${sum} = ${sum}_0;
% endfor
        }
</%def>\
<%def name="multiplied(of)">\
        // Entries of ${of.x} belong to other work-items; and these are through with it before it changes.
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (ulong i = me; i < n; i += ${work_group}) {
% if index_type(matrices, of.matrix):
            T found = ZERO;
            for (${index_type(matrices, of.matrix)} k = ${of.matrix}_indptr[i]; k < ${of.matrix}_indptr[i + 1]; ++k)
                found += times(${of.matrix}_data[k], ${of.x}_at[${of.matrix}_indices[k]]);
            ${of.y}_at[i] = found * alpha_${of.matrix};
% else:
            ${of.y}_at[i] = times(${of.matrix}_data[i], ${of.x}_at[i]) * alpha_${of.matrix};
% endif
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_groups, const ulong told_at, const uint count, const uint final,
% for matrix, _ in matrices:
    const R alpha_${matrix},
% endfor
    global T *all_scalars, global T *all_sums
% for vector in vectors:
    , global T *${vector}_at
% endfor
% for matrix, index in matrices:
% if index:
    , global const ${index} *${matrix}_indptr, global const ${index} *${matrix}_indices
% endif
    , global const T *${matrix}_data
% endfor
    )
{
% if needs_box:
    local T box[${work_group * boxes}];
% else:
    local T *box = 0;
% endif
    const uint me = get_local_id(0);
% for scalar in scalars:
    T scalar_${scalar} = all_scalars[${loop.index}];
% endfor
% for sum in sums:
    T sum_${sum} = ZERO;
% if sum in carried:
    for (ulong group = me; group < n_groups; group += ${work_group})
        sum_${sum} = ADD(sum_${sum}, all_sums[${loop.index} * n_groups + group]);
    sum_${sum} = lanes_reduce(box, sum_${sum}, ${work_group});
% endif
% endfor
    bool going = true;
    for (uint iteration = 0; iteration < count && going; ++iteration) {
% for step in steps:
${multiplied(step) if hasattr(step, "matrix") else passed(step)}\
% endfor
        going = ${going};
    }
    if (final) {
${passed(ending)}\
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
% for sum in carried:
    for (ulong group = me; group < n_groups; group += ${work_group})
        all_sums[${sums.index(sum)} * n_groups + group] = group == 0 ? sum_${sum} : ZERO;
% endfor
    if (me == 0) {
% for scalar in scalars:
        all_scalars[${loop.index}] = scalar_${scalar};
% endfor
    }
}
