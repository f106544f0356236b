<%doc>
Rows of C by merging the rows of B that a row of A names: each step takes the smallest column over the heads of these rows, sums the
products of the heads that have it, and advances them.

Heads live in registers. One work-item has up to ${items} of them.

Source        reg-merge: Liu et al., Register-Aware SpGEMM, Section 3.2; one work-item to a row
Index space   a work-item to a row
Inputs        see spgemm.cl; rows of A with at most ${items} entries
Local memory  none
Result        deterministic: products of a column are added in the order of A's row
</%doc>
#include "spgemm.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    const ulong slot = get_global_id(0);
    if (slot >= n_rows)
        return;
    const ulong row = SPGEMM_ROW(slot);
    const I begin = a_indptr[row];
    const uint length = (uint)(a_indptr[row + 1] - begin);
% for u in range(items):
    I at_${u} = 0, end_${u} = 0;
    COLUMN column_${u} = NO_COLUMN;
% if not symbolic:
    T factor_${u} = ZERO;
% endif
    if (${u} < length) {
        const I k = a_indices[begin + ${u}];
        at_${u} = b_indptr[k];
        end_${u} = b_indptr[k + 1];
        if (at_${u} < end_${u})
            column_${u} = (COLUMN)b_indices[at_${u}];
% if not symbolic:
        factor_${u} = from_a(a_data[begin + ${u}]);
% endif
    }
% endfor

% if symbolic:
    uint count = 0;
% else:
    C_INDEX place = c_indptr[row];
% endif
    for (;;) {
        COLUMN smallest = column_0;
% for u in range(1, items):
        smallest = min(smallest, column_${u});
% endfor
        if (smallest == NO_COLUMN)
            break;
% if not symbolic:
        T sum = ZERO;
% endif
% for u in range(items):
        if (column_${u} == smallest) {
% if not symbolic:
            sum = ADD(sum, MULTIPLY(factor_${u}, from_x(b_data[at_${u}])));
% endif
            ++at_${u};
            column_${u} = at_${u} < end_${u} ? (COLUMN)b_indices[at_${u}] : NO_COLUMN;
        }
% endfor
% if symbolic:
        ++count;
% else:
% if not values_only:
        c_indices[place] = (C_INDEX)smallest;
% endif
        c_data[place] = sum;
        ++place;
% endif
    }
% if symbolic:
    counts[row] = count;
% endif
}
