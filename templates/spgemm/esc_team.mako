<%doc>
Rows of C with at most ${products} products by ${lanes} work-items each: expanded, sorted by column in ${"global" if spilled else "local"} memory, and contracted.

Products are shared out evenly, whatever the lengths of the rows of B are. \
% if spilled:
They are sorted by radix, four bits of the column a pass: each
lane counts the digits of neighbouring products by itself, and a scan of all counters, digit by digit, tells where each product goes.
Products of neighbouring lanes lie beside each other.
% else:
As these are sorted, they are merged two by two, in as many
rounds as it takes; each lane merges as many products, which it finds by merge path.
% endif
A segmented scan over what the lanes hold of the entries of C that end in later lanes makes their sums.

Symbolic: columns alone are sorted, and distinct ones counted. Else a word is a column with ${"the entry of A and " if entry_bits else ""}the number of its product behind it.

Source        Dalton, Olson and Bell, Sections 3.2 to 3.4${"; the sort: Satish, Harris and Garland" if spilled else ", but merged where they sort by radix; merge path: Green, McColl and Bader"}
Index space   ${"any number of work-groups, of which each takes a row at a time" if spilled else f"{lanes} work-items to a row, {teams} rows to a work-group"}
Inputs        see spgemm.cl; rows with at most ${products} products and ${entries} entries of A${f"; passes: how many digits its columns have; scratch: {2 * room + base_words} words for each work-group" if spilled else ""}
Local memory  for each row ${"" if spilled else f"{2 * products} words and "}${entries + 1} numbers of 16 bits; ${f"{digits} counters of 16 bits for each lane; " if spilled else ""}what lanes exchange
Result        deterministic: a column's products are always added in the same order, within a lane that of A's row
</%doc>
<% digits = 1 << digit_bits %>\
<%namespace name="sort" file="spgemm/sort"/>\
typedef ushort PLACE;
typedef ${"ulong" if wide_words else "uint"} WORD;
#define NO_WORD ${"ULONG_MAX" if wide_words else "UINT_MAX"}
#define K WORD
#include "spgemm.cl"
#include "team.cl"
% if not spilled:
#include "merge_path.cl"
% endif
#define COLUMN_IN(word) ((word) >> ${bits + entry_bits})
// Where product i lies: one of the lane's own, and any.
% if spilled:
#define DIGIT_IN(word, pass) ((uint)((word) >> (${bits + entry_bits} + ${digit_bits} * (pass))) & ${digits - 1})
#define OWN(i) (((i) - begin_here) * ${lanes} + lane)
#define ANY(i) (((i) - mul_hi(i, reciprocal) * share) * ${lanes} + mul_hi(i, reciprocal))
% else:
#define OWN(i) (i)
#define ANY(i) (i)
% endif
## Where product i_u of entry k_u of A lies in B.
<%def name="place_in_b(u)">${f"bases[k_{u}] + (I)i_{u}" if bases else f"b_indptr[a_indices[begin + k_{u}]] + (I)(i_{u} - places[k_{u}])"}</%def>\
#define WORDS ${"global" if spilled else "local"}
% if spilled and lanes > 1:
#define words_sync() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
% else:
#define words_sync() team_sync()
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS${", const uint passes, global WORD *scratch" if spilled else ""})
{
% if not spilled:
    local WORD all_words[${teams * 2 * products}];
% endif
    local PLACE all_places[${teams * (entries + 1)}];
    local uint boxes[${work_group}];
% if spilled:
    local ushort counters[${digits * lanes}];
% endif
% if not symbolic:
    local T sums[${work_group}];
% endif
    const uint me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes};
% if spilled:
    WORDS WORD *const words = scratch + get_group_id(0) * ${2 * room + base_words}ul;
    global I *const bases = (global I *)(words + ${2 * room});
% else:
    WORDS WORD *const words = all_words + team * ${2 * products};
% if bases:
    // In the words that are not needed yet.
    local I *bases = (local I *)(words + ${products});
% endif
% endif
    local PLACE *const places = all_places + team * ${entries + 1};
% if spilled:
    for (ulong number = get_group_id(0); number < n_rows; number += get_num_groups(0)) {
    const bool active = true;
% else:
    const ulong number = (ulong)get_group_id(0) * ${teams} + team;
    const bool active = number < n_rows;
% endif
    const ulong row = active ? SPGEMM_ROW(number) : 0;
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;

    for (uint k = lane; k < length; k += ${lanes}) {
        const I column = a_indices[begin + k], of_b = b_indptr[column];
        places[k] = (PLACE)(b_indptr[column + 1] - of_b);
% if bases:
        bases[k] = of_b;
% endif
    }
    team_sync();
    team_offsets(places, length, boxes + team * ${lanes});
    const uint n = places[length];
    // An odd number of products for each lane: they do not meet in a bank.
    const uint share = ${f"max((n + {lanes - 1}) / {lanes} | 1, 3u)" if spilled else f"(n + {lanes - 1}) / {lanes} | 1"}, begin_here = min(lane * share, n), end_here = min(begin_here + share, n);
% if spilled:
    // 2^32 / share, rounded up: i / share is the upper half of i times that, as i * share is less than 2^32.
    const uint reciprocal = UINT_MAX / share + 1;
% endif
% if bases:
    // What is between the number of a product and its place in B, by entry of A.
    for (uint k = lane; k < length; k += ${lanes})
        bases[k] -= (I)places[k];
    words_sync();
% endif
    // Several products at a time, so that no load waits for another: ${"neighbouring ones, as they are sorted" if spilled else "of neighbouring lanes neighbouring ones"}.
% if spilled:
    for (uint first = begin_here; first < end_here; first += ${batch}) {
        const uint beyond = end_here;
% else:
    for (uint first = lane; first < n; first += ${batch * lanes}) {
        const uint beyond = n;
% endif
% for u in range(batch):
        const uint i_${u} = first + ${u if spilled else u * lanes};
% endfor
${sort.find_entries(range(batch), " " * 8)}\
% for u in range(batch):
        const COLUMN column_${u} = i_${u} < beyond ? (COLUMN)b_indices[${place_in_b(u)}] : 0;
% endfor
% for u in range(batch):
        if (i_${u} < beyond)
            words[OWN(i_${u})] = (WORD)column_${u}${f" << {bits + entry_bits}" if bits else ""}${f" | (WORD)k_{u} << {bits}" if entry_bits else ""}${f" | (WORD)i_{u}" if bits else ""};
% endfor
    }

% if spilled:
    const uint rounds = passes;
    for (uint pass = 0; pass < passes; ++pass) {
        words_sync();
        WORDS const WORD *const from = words + (pass & 1) * ${room};
        WORDS WORD *const to = words + (~pass & 1) * ${room};
        // Counters lie digit by digit, and in each lane by lane.
        for (uint digit = 0; digit < ${digits}; ++digit)
            counters[digit * ${lanes} + lane] = 0;
        for (uint i = begin_here; i < end_here; ++i)
            ++counters[DIGIT_IN(from[OWN(i)], pass) * ${lanes} + lane];
        team_sync();
        uint before = 0;
        for (uint i = 0; i < ${digits}; ++i)
            before += counters[lane * ${digits} + i];
        before = team_scan(boxes, before);
        for (uint i = 0; i < ${digits}; ++i) {
            const uint count = counters[lane * ${digits} + i];
            counters[lane * ${digits} + i] = (ushort)before;
            before += count;
        }
        team_sync();
        for (uint i = begin_here; i < end_here; ++i) {
            const WORD word = from[OWN(i)];
            const uint place = counters[DIGIT_IN(word, pass) * ${lanes} + lane]++;
            to[ANY(place)] = word;
        }
    }
% else:
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
            const uint apart = 1u << round, pair = k & ~(2 * apart - 1);
            const uint first = places[pair], middle = places[min(pair + apart, length)], last = places[min(pair + 2 * apart, length)];
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
% endif
    words_sync();

    WORDS const WORD *const sorted = words + (rounds & 1) * ${room};
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
% if roomy:
    if (active && lane == ${lanes - 1})
        counts[row] = run + heads;
% endif
% if bases and not spilled:
    // In the words that are no longer needed.
    bases = (local I *)(words + (~rounds & 1) * ${products});
    for (uint k = lane; k < length; k += ${lanes})
        bases[k] = b_indptr[a_indices[begin + k]] - (I)places[k];
    words_sync();
% endif
    // What is here of the entry that an earlier lane began, and of the last one.
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
            b_${u} = b_data[${place_in_b(u)}];
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
    // The sum of what earlier lanes hold of the entry that ends here.
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
% endif
% if spilled:
    // All lanes are done with what the next row overwrites.
    words_sync();
    }
% endif
}
