<%doc>
Iterations of a Krylov method on a system that one work-group holds: the passes over vectors and the products, one after another,
until the method ends. `sweep.mako` makes a kernel of each pass; here scalars and sums are in registers, the same in all
work-items.

Source        the recurrences are those of the methods; their modules name them
Index space   one work-group; entries i, i + work_group, ... of all vectors belong to one work-item, and so do these rows
Inputs        as of `sweep.mako`, of one part; A, and M if there is one: the arrays of CSR, or a diagonal. At most count
              iterations are made, with products times alpha, and if the launch is the final one, the pass that tells how the
              last of them ended. An alpha of 0 is determined by the first product, as a power of two, or 1 if no square comes
              near the limits; alphas are written behind the scalars that passes write for the host, and behind alphas the sums
              of the residual after the last iteration
Local memory  work_group * sizeof(T) for each eight sums where lanes do not reach over the work-group
Result        deterministic
</%doc>
<%namespace name="sweep" file="vectors/sweep"/>\
#define MAX_LANES ${work_group}
#include "lanes_t.cl"
// Number in place of a base-2 exponent for 0, NaN and infinity.
#define NO_EXPONENT 9999
<%!
    def index_type(matrices, name):
        return dict(matrices)[name]
%>\
<%def name="run_pass(vector_pass)">\
        {   // ${vector_pass.name}
% for scalar in vector_pass.takes:
            const T ${scalar} = scalar_${scalar};
% endfor
% for sum in vector_pass.totals:
            const T ${sum} = sum_${sum};
% endfor
% for line in vector_pass.first:
            ${line}
% endfor
% for sum, _ in vector_pass.sums:
            T ${sum}_0 = ZERO;
% endfor
            for (ulong i = me; i < n; i += ${work_group}) {
% for vector in vector_pass.reads + vector_pass.updates:
                const T ${vector}_0 = ${vector}_at[i];
% endfor
${sweep.entry(vector_pass, 0, "i", 1)}\
            }
${sweep.finish_sums([sum for sum, _ in vector_pass.sums], "_0")}\
% for name, expression in vector_pass.keeps:
            const T new_${name} = ${expression};
% endfor
% for name, expression in vector_pass.tells:
            if (me == 0)
                all_scalars[told_at + ${told.index(name)}] = ${expression};
% endfor
% for name, _ in vector_pass.keeps:
            scalar_${name} = new_${name};
% endfor
% for sum, _ in vector_pass.sums:
            sum_${sum} = ${sum}_0;
% endfor
        }
</%def>\
<%def name="multiply(product)">\
        // Barriers separate this product's reads of ${product.x} from other work-items' writes in the passes before and after.
        if (me == 0)
            tops[0] = tops[1] = -NO_EXPONENT;
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
        {
            const bool is_unknown = alpha_${product.matrix} == 0;
            const R factor = is_unknown ? 1 : alpha_${product.matrix};
            for (ulong i = me; i < n; i += ${work_group}) {
% if index_type(matrices, product.matrix):
                T sum = ZERO;
                for (${index_type(matrices, product.matrix)} k = ${product.matrix}_indptr[i]; k < ${product.matrix}_indptr[i + 1]; ++k)
                    sum += times(${product.matrix}_data[k], ${product.x}_at[${product.matrix}_indices[k]]);
                ${product.y}_at[i] = sum * factor;
% else:
                ${product.y}_at[i] = times(${product.matrix}_data[i], ${product.x}_at[i]) * factor;
% endif
            }
            if (is_unknown)
                for (ulong i = me; i < n; i += ${work_group}) {
                    atomic_max(&tops[0], clamp(ilogb(largest(${product.x}_at[i])), -NO_EXPONENT, NO_EXPONENT));
                    atomic_max(&tops[1], clamp(ilogb(largest(${product.y}_at[i])), -NO_EXPONENT, NO_EXPONENT));
                }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (is_unknown) {
                const int exponent = tops[1] - tops[0];
                if (tops[0] > -NO_EXPONENT && abs(tops[1]) < NO_EXPONENT)
                    alpha_${product.matrix} = abs(exponent) <= ${near} ? (R)1 : ldexp((R)1, -clamp(exponent, -${most}, ${most}));
                if (alpha_${product.matrix} != 0 && alpha_${product.matrix} != 1)
                    for (ulong i = me; i < n; i += ${work_group})
                        ${product.y}_at[i] *= alpha_${product.matrix};
            }
        }
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_groups, const ulong told_at, const uint count, const uint final,
% for matrix, _ in matrices:
    R alpha_${matrix},
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
    local int tops[2];
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
${multiply(step) if hasattr(step, "matrix") else run_pass(step)}\
% endfor
        going = ${going};
    }
    // No barrier is in a branch: a compiler that makes loops of work-items would copy all code behind such a barrier.
    for (uint last = 0; last < final; ++last) {
${run_pass(ending)}\
    }
    for (uint last = 0; last < (final || !going); ++last) {
${multiply(check[0])}\
% for sum, _ in check[1].sums:
        T sum_${sum};
% endfor
${run_pass(check[1])}\
% for sum, _ in check[1].sums:
        if (me == 0)
            all_scalars[told_at + ${len(told) + len(matrices) + loop.index}] = sum_${sum};
% endfor
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
% for sum in carried:
    for (ulong group = me; group < n_groups; group += ${work_group})
        all_sums[${sums.index(sum)} * n_groups + group] = group == 0 ? sum_${sum} : ZERO;
% endfor
    if (me == 0) {
% for matrix, _ in matrices:
        all_scalars[told_at + ${len(told) + loop.index}] = of_real(alpha_${matrix});
% endfor
% for scalar in scalars:
        all_scalars[${loop.index}] = scalar_${scalar};
% endfor
    }
}
