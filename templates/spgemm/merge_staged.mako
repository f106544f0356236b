<%doc>
Rows of C by merging the rows of B that a row of A names, a work-item to a row, as in merge_item.mako, for neighbouring rows of A
that name the same rows of B. Those of a work-group, which is one sub-group, are read side by side into local memory, as far as
they lie in a few ranges that fit; else each work-item reads its own.

Source        after merge_item.mako, heads in registers
Index space   one work-item to a row; `lane_width` work-items in a work-group
Inputs        see spgemm.cl; rows of A with at most `items` entries
Local memory  `staged_b + 1` entries of B a work-group; `staged_c` entries of C a work-item: if those of all its rows fit, they
              go from there to C side by side
Result        deterministic: products of a column are added in the order of A's row
</%doc>
<%! import functools %>\
<%namespace name="item" file="spgemm/merge_item"/>\
<%
    min_of = lambda names: functools.reduce(lambda a, b: f"min({a}, {b})", names)
%>\
#define TEAM 1
#define HEADS ${items}
#define HEADS_IN_REGISTERS 1
#define STAGED ${staged_c}
#define M uint
#define MIN_LANES LANE_WIDTH
#include "spgemm.cl"
#include "merge_heads.cl"
#include "staged_c.cl"
#include "lanes_min.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    // Local memory for one entry of B more than is staged: a head at the end of its row of B loads the entry behind the row, too.
    local COLUMN input_columns[${staged_b + 1}];
    local X_VALUE input_values[${staged_b + 1}];
    const uint me = get_local_id(0), lane = 0;
    const ulong slot = get_global_id(0);
    // Lanes without a row of C go on, as every lane takes part in exchanges and barriers.
    const bool active = slot < n_rows;
    const ulong row = active ? SPGEMM_ROW(slot) : 0;
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;
% for u in heads:
    HEAD(${u})
    uint named_${u} = UINT_MAX;
    FOR_USED_HEADS(${u}) {
        TAKE_HEAD(${u})
        named_${u} = (uint)k;
        TAKE_FACTOR(${u})
    }
% endfor
    C_INDEX place = active ? c_indptr[row] : 0;
    const C_INDEX end = active ? c_indptr[row + 1] : 0;
    STAGE_C
    // Ranges of rows of B are staged, as long as there is room: each begins at the first row that A names and no range has.
    uint filled = 0, first_named;
    for (uint range = 0; ; ++range) {
        first_named = ${min_of(f"named_{u}" for u in heads)};
        first_named = lanes_min(first_named);
        if (first_named == UINT_MAX || range == ${ranges})
            break;
        uint greatest = first_named;
% for u in heads:
        greatest = named_${u} - first_named < ${2 * lane_width} ? max(greatest, named_${u}) : greatest;
% endfor
        greatest = ~lanes_min(~greatest);
        const I from = b_indptr[first_named];
        const uint n = (uint)(b_indptr[greatest + 1] - from);
        if (n > ${staged_b} - filled)
            break;
% for u in heads:
        if (named_${u} - first_named < ${2 * lane_width}) {
            POSITION(${u}) += (I)filled - from;
            named_${u} = UINT_MAX;
        }
% endfor
        // Eight loads of entries of B are in flight together in a work-item, so that latencies overlap.
        for (uint i = me; i < n; i += ${8 * lane_width}) {
% for k in range(8):
            const bool has_${k} = i + ${k * lane_width} < n;
            const I b_${k} = from + (I)(has_${k} ? i + ${k * lane_width} : 0);
            const COLUMN column_read_${k} = (COLUMN)b_indices[b_${k}];
            const X_VALUE value_read_${k} = b_data[b_${k}];
% endfor
% for k in range(8):
            if (has_${k}) {
                input_columns[filled + i + ${k * lane_width}] = column_read_${k};
                input_values[filled + i + ${k * lane_width}] = value_read_${k};
            }
% endfor
        }
        filled += n;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first_named == UINT_MAX) {
        // From here on REMAINING(u) is the position where the row of B of head u ends, no longer a number of entries.
% for u in heads:
        REMAINING(${u}) += (COLUMN)POSITION(${u});
% endfor
        for (; place < end; ++place) {
            // All heads (current entries of rows of B) load a column, advanced or not: local memory is fast.
% for u in heads:
            COLUMN_OF(${u}) = POSITION(${u}) < (I)REMAINING(${u}) ? input_columns[POSITION(${u})] : NO_COLUMN;
            const T value_${u} = from_x(input_values[POSITION(${u})]);
% endfor
${item.smallest_column()}\
            T sum = ZERO;
% for u in heads:
            if (COLUMN_OF(${u}) == smallest) {
                sum = ADD(sum, MULTIPLY(FACTOR(${u}), value_${u}));
                ++POSITION(${u});
            }
% endfor
            PUT_ENTRY(smallest, sum)
        }
    } else {
        // Not all rows of B fit in local memory: heads (current entries of rows of B) that point there point into B again.
% for u in heads:
        if (${u} < length)
            POSITION(${u}) = b_indptr[a_indices[begin + ${u}]];
        START_HEAD(${u})
% endfor
${item.merge_heads()}\
    }
    WRITE_STAGED
}
