<%doc>
Rows of C by a work-group each, which takes one row after another: products are expanded, sorted by column in global memory, and
contracted, as in esc_team.mako.

Products are sorted by radix, `digit_bits` bits of the column a pass: each lane counts the digits of neighbouring products by
itself, and a scan of all counters, digit by digit, tells where each product goes. Products of neighbouring lanes lie beside each
other.

A word is what is sorted: in the symbolic phase a column; else a column with the entry of A, if there is room for it, and the
number of its product behind it.

Source        Dalton, Olson and Bell, Sections 3.2 to 3.4; the sort: Satish, Harris and Garland
Index space   any number of work-groups, whose lanes are all their work-items
Inputs        see spgemm.cl; rows with at most `products` products and `entries` entries of A; passes: how many digits their
              columns have; scratch: `2 * room + base_words` words for each work-group
Local memory  `entries + 1` numbers of 16 bits; a counter of 16 bits for each digit and lane; what lanes exchange
Result        deterministic: a column's products are always added in the same order, within a lane that of A's row
</%doc>
<% digits = 1 << digit_bits %>\
<%namespace name="sort" file="spgemm/sort"/>\
<%namespace name="team" file="spgemm/esc_team"/>\
${team.types(entry_bits)}\
#define WORDS global
#define DIGIT_IN(word, pass) ((uint)((word) >> (${bits + entry_bits} + ${digit_bits} * (pass))) & ${digits - 1})
// OWN(i), ANY(i): the position of product i among the words to sort; OWN for a product of the lane's share, ANY for any product.
#define OWN(i) (((i) - begin_here) * ${lanes} + lane)
#define ANY(i) (((i) - mul_hi(i, reciprocal) * share) * ${lanes} + mul_hi(i, reciprocal))
% if lanes > 1:
#define words_sync() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
% else:
#define words_sync() team_sync()
% endif
// PLACE_IN_B(k, i): the position in B of the factor of product i, which belongs to entry k of A's row.
#define PLACE_IN_B(k, i) (bases[k] + (I)(i))

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS, const uint passes, global WORD *scratch)
{
    local PLACE all_places[${entries + 1}];
    local uint boxes[${work_group}];
    local ushort counters[${digits * lanes}];
% if not symbolic:
    local T sums[${work_group}];
% endif
    const uint me = get_local_id(0), lane = me % ${lanes}, team = me / ${lanes};
    WORDS WORD *const words = scratch + get_group_id(0) * ${2 * room + base_words}ul;
    global I *const bases = (global I *)(words + ${2 * room});
    local PLACE *const places = all_places + team * ${entries + 1};
    for (ulong number = get_group_id(0); number < n_rows; number += get_num_groups(0)) {
    const bool active = true;
${team.entries_of_row(True)}\
    // A lane has an odd number of the row's products, so that lanes do not meet in a bank of local memory.
    const uint share = max((n + ${lanes - 1}) / ${lanes} | 1, 3u), begin_here = min(lane * share, n), end_here = min(begin_here + share, n);
    // reciprocal: 2^32 / share (a lane's products), rounded up: i / share is the upper half of i * reciprocal (i * share < 2^32).
    const uint reciprocal = UINT_MAX / share + 1;
${team.bases_of_products()}\
    // A lane loads the columns of several neighbouring products at a time, so that no load waits for another.
    for (uint first = begin_here; first < end_here; first += ${batch}) {
        const uint beyond = end_here;
% for u in range(batch):
        const uint i_${u} = first + ${u};
% endfor
${sort.find_entries(range(batch), " " * 8)}\
${team.columns()}\
% for u in range(batch):
        if (i_${u} < beyond)
            words[OWN(i_${u})] = (WORD)column_${u}${f" << {bits + entry_bits}" if bits else ""}${f" | (WORD)k_{u} << {bits}" if entry_bits else ""}${f" | (WORD)i_{u}" if bits else ""};
% endfor
    }

    const uint rounds = passes;
    for (uint pass = 0; pass < passes; ++pass) {
        words_sync();
        WORDS const WORD *const from = words + (pass & 1) * ${room};
        WORDS WORD *const to = words + (~pass & 1) * ${room};
        // Counters of the radix sort are ordered by digit, those of one digit by lane.
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
    words_sync();

    WORDS const WORD *const sorted = words + (rounds & 1) * ${room};
${team.count_columns()}\
% if not symbolic:
${team.add_products(entry_bits)}\
% endif
    // The next row of C overwrites local memory, so all lanes have to be done with this row.
    words_sync();
    }
}
