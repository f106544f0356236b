<%doc>
Rows of C by merging the rows of B that a row of A names, a team of lanes to a row, as in merge_item.mako: the smallest column is
the minimum over the heads of all lanes, values are sums over them. A turn finds as many columns as lanes write side by side.
Symbolic: columns are counted.

Source        as for merge_item.mako
Index space   `lanes` work-items to a row, lanes of one sub-group
Inputs        see spgemm.cl; rows of A with at most `lanes * items` entries
Local memory  `registers`: none, else `items` heads a work-item
Result        deterministic: products of a column are added in an order that A's row alone determines
</%doc>
<%namespace name="item" file="spgemm/merge_item"/>\
<%
    # Columns that a team finds before it writes them: a lane of it gets each, so that they are written side by side.
    turn = min(lanes, 4)
%>\
#define TEAM ${lanes}
#define HEADS ${items}
#define HEADS_IN_REGISTERS ${int(registers)}
#define M COLUMN
#define MIN_LANES TEAM
#include "spgemm.cl"
#include "merge_heads.cl"
#include "lanes_min.cl"
% if not symbolic:
#include "lanes_xor.cl"
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    HEADS_IN_LOCAL_MEMORY
    const uint me = get_local_id(0), lane = get_local_id(0) % TEAM;
    const ulong slot = get_global_id(0) / TEAM;
    // Lanes without a row of C go on, as every lane takes part in exchanges.
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
${count_columns(turn)}\
    if (active && lane == 0)
        counts[row] = count;
% else:
    C_INDEX place = active ? c_indptr[row] : 0;
    const C_INDEX end = active ? c_indptr[row + 1] : 0;
    bool more = true;
    do {
        T ${", ".join(f"sum_{k} = ZERO" for k in range(turn))};
% if not values_only:
        COLUMN mine = NO_COLUMN;
% endif
        for (uint i = 0; i < ${turn}; ++i) {
% if values_only:
            const COLUMN smallest = place + (C_INDEX)i < end ? (COLUMN)c_indices[place + (C_INDEX)i] : NO_COLUMN;
% else:
${item.smallest_column()}\
            smallest = lanes_min(smallest);
% endif
            const bool has_column = smallest != NO_COLUMN;
            T sum = ZERO;
% for u in heads:
            FOR_HEADS(${u}) if (COLUMN_OF(${u}) == smallest && has_column) {
                ADD_PRODUCT(${u})
                ADVANCE_HEAD(${u})
            }
% endfor
% if not values_only:
            mine = lane == i ? smallest : mine;
% endif
% for k in range(turn):
            sum_${k} = i == ${k} ? sum : sum_${k};
% endfor
        }
        // A transposed reduction: lane i gets the sum over all lanes for column i of the turn; a step halves the sums a lane has.
% for half in [1 << b for b in reversed(range(turn.bit_length() - 1))]:
% for k in range(half):
        {
            const bool upper = lane & ${half};
            const T other = lanes_xor(upper ? sum_${k} : sum_${k + half}, ${half});
            sum_${k} = ADD(upper ? sum_${k + half} : sum_${k}, other);
        }
% endfor
% endfor
        for (uint m = ${turn}; m < TEAM; m *= 2)
            sum_0 = ADD(sum_0, lanes_xor(sum_0, m));
        if (lane < ${turn} && place + (C_INDEX)lane < end) {
% if not values_only:
            c_indices[place + (C_INDEX)lane] = (C_INDEX)mine;
% endif
            c_data[place + (C_INDEX)lane] = sum_0;
        }
        place += ${turn};
        more = place < end;
        // Lanes of a sub-group stay together until all teams (the lanes of a row) in the sub-group are done.
    } while (sub_group_min(more ? 0 : NO_COLUMN) != NO_COLUMN);
% endif
}
<%def name="count_columns(turn)">\
    uint count = 0;
    bool more = true;
    do {
        for (uint i = 0; i < ${turn}; ++i) {
${item.smallest_column()}\
            smallest = lanes_min(smallest);
            const bool has_column = smallest != NO_COLUMN;
% for u in heads:
            FOR_HEADS(${u}) if (COLUMN_OF(${u}) == smallest && has_column) {
                ADVANCE_HEAD(${u})
            }
% endfor
            count += has_column;
            more = has_column;
        }
        // Lanes of a sub-group stay together until all teams (the lanes of a row) in the sub-group are done.
    } while (sub_group_min(more ? 0 : NO_COLUMN) != NO_COLUMN);
</%def>
