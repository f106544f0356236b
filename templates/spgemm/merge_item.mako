<%doc>
Rows of C by merging the rows of B that a row of A names, a work-item to a row: each step takes the smallest column over the heads
of these rows, sums the products of the heads that have it, and advances them. Symbolic: steps are counted.

Source        reg-merge, heads in registers: Liu et al., Register-Aware SpGEMM, Section 3.2; merge, heads in local memory: its
              original
Index space   one work-item to a row
Inputs        see spgemm.cl; rows of A with at most `items` entries
Local memory  heads, `items` a work-item, unless `registers`; `staged_c` entries of C a work-item: if those of all its rows fit,
              they go from there to C side by side
Result        deterministic: products of a column are added in the order of A's row
</%doc>
#define TEAM 1
#define HEADS ${items}
#define HEADS_IN_REGISTERS ${int(registers)}
#define STAGED ${staged_c}
#include "spgemm.cl"
#include "merge_heads.cl"
% if not symbolic:
#include "staged_c.cl"
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    HEADS_IN_LOCAL_MEMORY
    const uint me = get_local_id(0), lane = 0;
    const ulong slot = get_global_id(0);
    // Work-items without a row of C go on, as the write of staged entries of C has a barrier.
    const bool active = slot < n_rows;
    const ulong row = active ? SPGEMM_ROW(slot) : 0;
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;
% for u in heads:
    HEAD(${u})
    FOR_USED_HEADS(${u}) {
        TAKE_HEAD(${u})
        START_HEAD(${u})
        TAKE_FACTOR(${u})
    }
% endfor
% if symbolic:
${count_columns()}\
    if (active)
        counts[row] = count;
% else:
    C_INDEX place = active ? c_indptr[row] : 0;
    const C_INDEX end = active ? c_indptr[row + 1] : 0;
    STAGE_C
${merge_heads()}\
    WRITE_STAGED
% endif
}
<%def name="smallest_column()">\
        COLUMN smallest = NO_COLUMN;
% for u in heads:
        FOR_HEADS(${u}) smallest = min(smallest, COLUMN_OF(${u}));
% endfor
</%def>
<%def name="count_columns()">\
    uint count = 0;
    for (;; ++count) {
${smallest_column()}\
        if (smallest == NO_COLUMN)
            break;
% for u in heads:
        FOR_HEADS(${u}) if (COLUMN_OF(${u}) == smallest) {
            ADVANCE_HEAD(${u})
        }
% endfor
    }
</%def>
<%def name="merge_heads()">\
    for (; place < end; ++place) {
${smallest_column()}\
        T sum = ZERO;
% for u in heads:
        FOR_HEADS(${u}) if (COLUMN_OF(${u}) == smallest) {
            ADD_PRODUCT(${u})
            ADVANCE_HEAD(${u})
        }
% endfor
        PUT_ENTRY(smallest, sum)
    }
</%def>
