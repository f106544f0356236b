<%doc>
Rows of C by sorting: the products of a row are shared out evenly over `lanes` lanes, `items` each, sorted by column and by their
place in the order of A's row, and runs of one column are added up.

Symbolic: columns alone are sorted, and runs counted. Else a word is a column with the number of its product behind it, and values
wait in local memory.

Source        reg-sort, words sorted in registers: Liu et al., Register-Aware SpGEMM, Sections 2.3 and 3.1; sort, words sorted in
              local memory: as in bhSPARSE. Runs are added up by a lane each, so that sums have the order of A's row
Index space   `lanes` work-items to a row, `teams` rows to a work-group
Inputs        see spgemm.cl; rows with at most `products` products and as many entries of A
Local memory  for each row `products + lanes` words, `products + 1` numbers of 16 bits and `products` indices, `products` values
              outside the symbolic phase; what lanes exchange
Result        deterministic: products of a column are added in the order of A's row
</%doc>
<%namespace name="sorting" file="primitives/sort_network"/>\
typedef ushort PLACE;
typedef ${"ulong" if word_bytes == 8 else "uint"} WORD;
#define NO_WORD ${"ULONG_MAX" if word_bytes == 8 else "UINT_MAX"}
#include "spgemm.cl"
#include "team.cl"
% if registers:
#include "lanes_u64.cl"
#define WORD_XOR lanes_xor_${"u64" if word_bytes == 8 else "u32"}
${sorting.comparators(False)}
% endif
## Find k_u, the entry of A that product i_u belongs to, for several u: the last entry whose products begin at or before i_u. All
## searches take the same number of steps.
<%def name="find_entries(numbers, indent)">\
${indent}uint ${", ".join(f"k_{u} = 0" for u in numbers)};
${indent}for (uint step = length > 1 ? 1u << (31 - clz(length - 1)) : 0; step; step /= 2) {
% for u in numbers:
${indent}    if (k_${u} + step < length && places[k_${u} + step] <= i_${u})
${indent}        k_${u} += step;
% endfor
${indent}}
</%def>\
// SLOT(i): the position of word i (a product to sort) in local memory, with a gap behind each lane's words for other banks.
#define SLOT(i) ((i) + (i) / ${items})
#define COLUMN_IN(word) ((word) >> ${bits})

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    local WORD box[${work_group * (items + 1)}];
    local uint boxes[${work_group}];
    local PLACE all_places[${teams * (products + 1)}];
    local I all_bases[${teams * products}];
% if not symbolic:
    local T all_terms[${teams * products}];
% endif
    const uint me = get_local_id(0), lanes = ${lanes};
    TEAM_ROW
    local WORD *const words = box + team * ${products + lanes};
    local PLACE *const places = all_places + team * ${products + 1};
    local I *const bases = all_bases + team * ${products};
% if not symbolic:
    local T *const terms = all_terms + team * ${products};
    const C_INDEX of_c = active ? c_indptr[row] : 0;
% if not upper_bound:
    const uint n_runs = active ? (uint)(c_indptr[row + 1] - of_c) : 0;
% endif
% endif

    for (uint k = lane; k < length; k += lanes) {
        const I column = a_indices[begin + k], of_b = b_indptr[column];
        places[k] = (PLACE)(b_indptr[column + 1] - of_b);
        bases[k] = of_b;
    }
    team_sync();
    team_offsets(places, length, boxes + team * lanes);
    const uint n = places[length];
    // bases[k] becomes the difference between a product's position in B and its number, for the products of entry k of A.
    for (uint k = lane; k < length; k += lanes)
        bases[k] -= (I)places[k];
    team_sync();
% for first in range(0, items, batch):
    {
        // The entries of A of several products are searched for at the same time, so that no load waits for another.
% for u in range(first, first + batch):
        const uint i_${u} = lane + ${u * lanes};
% endfor
${find_entries(range(first, first + batch), " " * 8)}\
% for u in range(first, first + batch):
        WORD word_${u} = NO_WORD;
% if not symbolic:
        A_VALUE a_${u} = (A_VALUE)(0);
        X_VALUE b_${u} = (X_VALUE)(0);
% endif
        if (i_${u} < n) {
            const I at = bases[k_${u}] + (I)i_${u};
            word_${u} = (WORD)b_indices[at]${f" << {bits} | (WORD)i_{u}" if bits else ""};
% if not symbolic:
            a_${u} = a_data[begin + k_${u}];
            b_${u} = b_data[at];
% endif
        }
% endfor
% for u in range(first, first + batch):
        words[SLOT(i_${u})] = word_${u};
% if not symbolic:
        if (i_${u} < n)
            terms[i_${u}] = MULTIPLY(from_a(a_${u}), from_x(b_${u}));
% endif
% endfor
    }
% endfor
    team_sync();
% if registers:
    // A lane has neighbouring words (products to sort) in registers, before the sort and after it.
% for u in range(items):
    WORD word_${u} = words[lane * ${items + 1} + ${u}];
% endfor
% if lanes > lane_width:
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
${sorting.network(items, lanes, lane_width, work_group, False)}\
% for u in range(items):
    words[lane * ${items + 1} + ${u}] = word_${u};
% endfor
    team_sync();
% else:
    // A bitonic merge of runs of width / 2 words: a run is first compared with the mirrored run behind it: all runs ascend.
    uint width = 2, step = 1;
    for (uint turn = 0; turn < ${bits_of_products * (bits_of_products + 1) // 2}; ++turn) {
        for (uint i = lane; i < ${products // 2}; i += lanes) {
            const uint low = 2 * i - (i & (step - 1)), high = 2 * step == width ? low ^ (width - 1) : low + step;
            const WORD x = words[SLOT(low)], y = words[SLOT(high)];
            if (x > y) {
                words[SLOT(low)] = y;
                words[SLOT(high)] = x;
            }
        }
        team_sync();
        width = step == 1 ? 2 * width : width;
        step = step == 1 ? width / 2 : step / 2;
    }
% endif

    // Bit i of begins is set if a run of equal columns begins at the lane's word i.
    uint begins = 0;
    WORD before = lane ? words[lane * ${items + 1} - 2] : 0;
    for (uint i = 0; i < ${items}; ++i) {
        const WORD word = words[lane * ${items + 1} + i];
        const uint at = lane * ${items} + i;
        begins |= (uint)(at < n && (at == 0 || COLUMN_IN(word) != COLUMN_IN(before))) << i;
        before = word;
    }
    uint place = team_scan(boxes + team * lanes, popcount(begins));
% if symbolic:
    if (active && lane == lanes - 1)
        counts[row] = place + popcount(begins);
% else:
% if upper_bound:
    if (lane == lanes - 1) {
        boxes[team * lanes] = place + popcount(begins);
        if (active)
            counts[row] = place + popcount(begins);
    }
% endif
    // places[i] becomes the position of run i of equal columns, as the first products of A's entries are no longer needed.
    for (; begins; begins &= begins - 1)
        places[place++] = (PLACE)(lane * ${items} + 31 - clz(begins & -begins));
    team_sync();
% if upper_bound:
    const uint n_runs = boxes[team * lanes];
% endif
    for (uint i = lane; i < n_runs; i += lanes) {
        const uint first = places[i], end = i + 1 < n_runs ? places[i + 1] : n;
        const WORD word = words[SLOT(first)];
        T sum = terms[word & ${products - 1}];
        for (uint j = first + 1; j < end; ++j)
            sum = ADD(sum, terms[words[SLOT(j)] & ${products - 1}]);
% if not values_only:
        c_indices[of_c + (C_INDEX)i] = (C_INDEX)COLUMN_IN(word);
% endif
        c_data[of_c + (C_INDEX)i] = sum;
    }
% endif
}
