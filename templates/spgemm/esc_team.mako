<%doc>
Rows of C by a team of work-items each: the products of a row are expanded, sorted by column in local memory, and contracted.

Products are shared out evenly, whatever the lengths of the rows of B are. As these rows are sorted, they are merged two by two,
in as many rounds as it takes; each lane merges as many products, which it finds by merge path. A segmented scan over what the
lanes hold of the entries of C that end in later lanes makes their sums.

A word is what is sorted: in the symbolic phase a column, and distinct ones are counted; else a column with the number of its
product behind it.

Source        Dalton, Olson and Bell, Sections 3.2 to 3.4, but merged where they sort by radix; merge path: Green, McColl and
              Bader
Index space   `lanes` work-items to a row, `teams` rows to a work-group
Inputs        see spgemm.cl; rows with at most `products` products and entries of A
Local memory  for each row `2 * products` words and `products + 1` numbers of 16 bits; what lanes exchange
Result        deterministic: a column's products are always added in the same order, within a lane that of A's row
</%doc>
<%namespace name="sort" file="spgemm/sort"/>\
${types()}\
#include "merge_path.cl"
#define WORDS local
// OWN(i), ANY(i): the position of product i among the words to sort; OWN for a product of the lane's share, ANY for any product.
#define OWN(i) (i)
#define ANY(i) (i)
#define words_sync() team_sync()
// PLACE_IN_B(k, i): the position in B of the factor of product i, which belongs to entry k of A's row.
% if bases:
#define PLACE_IN_B(k, i) (bases[k] + (I)(i))
% else:
#define PLACE_IN_B(k, i) (b_indptr[a_indices[begin + (k)]] + (I)((i) - places[k]))
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS)
{
    local WORD all_words[${teams * 2 * products}];
    local PLACE all_places[${teams * (products + 1)}];
    local uint boxes[${work_group}];
% if not symbolic:
    local T sums[${work_group}];
% endif
    const uint me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes};
    WORDS WORD *const words = all_words + team * ${2 * products};
% if bases:
    // bases (where the rows of B of A's entries begin) uses memory of the products to sort that is not needed yet.
    local I *bases = (local I *)(words + ${products});
% endif
    local PLACE *const places = all_places + team * ${products + 1};
    const ulong number = (ulong)get_group_id(0) * ${teams} + team;
    const bool active = number < n_rows;
${entries_of_row(bases)}\
    // A lane has an odd number of the row's products, so that lanes do not meet in a bank of local memory.
    const uint share = (n + ${lanes - 1}) / ${lanes} | 1, begin_here = min(lane * share, n), end_here = min(begin_here + share, n);
% if bases:
${bases_of_products()}\
% endif
    // A lane loads the columns of several products at a time, so that no load waits for another; lanes load side by side.
    for (uint first = lane; first < n; first += ${batch * lanes}) {
        const uint beyond = n;
% for u in range(batch):
        const uint i_${u} = first + ${u * lanes};
% endfor
${sort.find_entries(range(batch), " " * 8)}\
${columns()}\
% for u in range(batch):
        if (i_${u} < beyond)
            words[OWN(i_${u})] = (WORD)column_${u}${f" << {bits} | (WORD)i_{u}" if bits else ""};
% endfor
    }

    const uint rounds = length > 1 ? 32 - clz(length - 1) : 0;
% if free:
    for (uint round = 0; round < rounds; ++round) {
% else:
    for (uint round = 0; round < ${(products - 1).bit_length()}; ++round) {
% endif
        team_sync();
        local const WORD *const from = words + (round & 1) * ${products};
        local WORD *const to = words + (~round & 1) * ${products};
        uint out = begin_here, k = 0;
        while (round < rounds && out < end_here) {
            k = team_find(places, k, length, out);
            const uint stride = 1u << round, pair = k & ~(2 * stride - 1);
            const uint first = places[pair], middle = places[min(pair + stride, length)], last = places[min(pair + 2 * stride, length)];
            const uint of_a = merge_path_local(from + first, middle - first, from + middle, last - middle, out - first);
            const uint stop = min(last, end_here);
            uint a = first + of_a, b = middle + (out - first - of_a);
            WORD word_a = a < middle ? from[a] : NO_WORD, word_b = b < last ? from[b] : NO_WORD;
            for (; out < stop; ++out) {
                const bool take_b = word_b < word_a;
                to[out] = take_b ? word_b : word_a;
                if (take_b)
                    word_b = ++b < last ? from[b] : NO_WORD;
                else
                    word_a = ++a < middle ? from[a] : NO_WORD;
            }
        }
    }
    words_sync();

    WORDS const WORD *const sorted = words + (rounds & 1) * ${products};
${count_columns()}\
% if not symbolic:
% if bases:
    // bases[k], a product's position in B less its number for entry k of A, uses memory of sorted words no longer needed.
    bases = (local I *)(words + (~rounds & 1) * ${products});
    for (uint k = lane; k < length; k += ${lanes})
        bases[k] = b_indptr[a_indices[begin + k]] - (I)places[k];
    words_sync();
% endif
${add_products()}\
% endif
}
## esc_group.mako renders the following blocks, too. A lane has the products from begin_here to end_here - 1 of the row's n.
<%def name="types(entry_bits=0)">\
typedef ushort PLACE;
typedef ${"ulong" if word_bytes == 8 else "uint"} WORD;
#define NO_WORD ${"ULONG_MAX" if word_bytes == 8 else "UINT_MAX"}
#define K WORD
#include "spgemm.cl"
#include "team.cl"
#define COLUMN_IN(word) ((word) >> ${bits + entry_bits})
</%def>
## The row of C, and the number of the first product of each entry of A's row.
<%def name="entries_of_row(keeps_bases)">\
    const ulong row = active ? SPGEMM_ROW(number) : 0;
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;

    for (uint k = lane; k < length; k += ${lanes}) {
        const I column = a_indices[begin + k], of_b = b_indptr[column];
        places[k] = (PLACE)(b_indptr[column + 1] - of_b);
% if keeps_bases:
        bases[k] = of_b;
% endif
    }
    team_sync();
    team_offsets(places, length, boxes + team * ${lanes});
    const uint n = places[length];
</%def>
<%def name="bases_of_products()">\
    // bases[k] becomes the difference between a product's position in B and its number, for the products of entry k of A.
    for (uint k = lane; k < length; k += ${lanes})
        bases[k] -= (I)places[k];
    words_sync();
</%def>
## The columns of products i_u, which belong to entries k_u of A.
<%def name="columns()">\
% for u in range(batch):
        const COLUMN column_${u} = i_${u} < beyond ? (COLUMN)b_indices[PLACE_IN_B(k_${u}, i_${u})] : 0;
% endfor
</%def>
## heads: the number of columns that begin in the lane; run: the number of columns that begin before it. Ends the symbolic phase.
<%def name="count_columns()">\
    uint heads = 0;
    const WORD earlier = begin_here > 0 && begin_here < n ? sorted[ANY(begin_here - 1)] : NO_WORD;
    WORD last = earlier;
    for (uint i = begin_here; i < end_here; ++i) {
        const WORD word = sorted[OWN(i)];
        heads += i == 0 || COLUMN_IN(word) != COLUMN_IN(last);
        last = word;
    }
    uint run = team_scan(boxes + team * ${lanes}, heads);
% if symbolic:
    if (active && lane == ${lanes - 1})
        counts[row] = run + heads;
% else:
    const C_INDEX of_c = active ? c_indptr[row] : 0;
    const uint earlier_run = run;
% if upper_bound:
    if (active && lane == ${lanes - 1})
        counts[row] = run + heads;
% endif
% endif
</%def>
## The sums of the columns: a word has the product's entry of A in entry_bits bits or, if these are 0, the entry is searched for.
<%def name="add_products(entry_bits=0)">\
    // lead: the lane's part of the entry of C that an earlier lane began; sum: the lane's part of its last entry of C.
    T lead = ZERO, sum = ZERO;
    bool led = false, open = false;
    last = earlier;
    for (uint first = begin_here; first < end_here; first += ${batch}) {
% for u in range(batch):
        const bool there_${u} = first + ${u} < end_here;
        const WORD word_${u} = there_${u} ? sorted[OWN(first + ${u})] : 0;
        const uint i_${u} = (uint)word_${u} & ${2**bits - 1};
% endfor
% if entry_bits:
% for u in range(batch):
        const uint k_${u} = (uint)(word_${u} >> ${bits}) & ${2**entry_bits - 1};
% endfor
% else:
${sort.find_entries(range(batch), " " * 8)}\
% endif
% for u in range(batch):
        A_VALUE a_${u} = (A_VALUE)(0);
        X_VALUE b_${u} = (X_VALUE)(0);
        if (there_${u}) {
            a_${u} = a_data[begin + k_${u}];
            b_${u} = b_data[PLACE_IN_B(k_${u}, i_${u})];
        }
% endfor
% for u in range(batch):
        if (there_${u}) {
            if (first + ${u} == 0 || COLUMN_IN(word_${u}) != COLUMN_IN(last)) {
                if (run > earlier_run)
                    c_data[of_c + (C_INDEX)(run - 1)] = sum;
                else {
                    lead = sum;
                    led = open;
                }
% if not values_only:
                c_indices[of_c + (C_INDEX)run] = (C_INDEX)COLUMN_IN(word_${u});
% endif
                ++run;
                open = false;
            }
            last = word_${u};
            const T term = MULTIPLY(from_a(a_${u}), from_x(b_${u}));
            sum = open ? ADD(sum, term) : term;
            open = true;
        }
% endfor
    }
    // sum becomes the sum over the lanes, up to this one, that have products of the lane's last entry of C.
    uint begins = heads > 0;
    const T mine = sum;
    for (uint step = 1; step < ${lanes}; step *= 2) {
        sums[me] = sum;
        boxes[me] = begins;
        team_sync();
        if (lane >= step && !begins) {
            sum = ADD(sums[me - step], sum);
            begins = boxes[me - step];
        }
        team_sync();
    }
    sums[me] = sum;
    team_sync();
    const T before = lane > 0 ? sums[me - 1] : ZERO;
    if (begin_here < end_here) {
        if (heads > 0 && begin_here > 0)
            c_data[of_c + (C_INDEX)(earlier_run - 1)] = led ? ADD(before, lead) : before;
        if (end_here == n)
            c_data[of_c + (C_INDEX)(run - 1)] = heads > 0 ? mine : ADD(before, mine);
    }
</%def>
