<%doc>
Speculative symbolic phase: count the entries of all rows of C by merging, with a kernel chosen before the rows were analysed.
Check the choice, too: no row of A has more than `lanes * items` entries, no row of B that A names has more than
`max_length_of_b` entries and, if a work-item merges a row, no row has more products than that.

Source        merge_item.mako and merge_team.mako
Index space   `lanes` work-items to a row
Inputs        see spgemm.cl; sums: n_sums + 4 + `slots` zeros
Output        sums[0]           0
              sums[1..n_sums]   entries of C, a sum per groups_to_sum work-groups
              report[0]         1 if the choice was wrong (report is sums + n_sums + 1)
              report[1]         the longest row of A
              report[2]         the number of rows without products
              report[3..]       `slots` partial sums of the number of products
Local memory  heads, `items` a work-item, unless `registers`; two words a work-item
Result        deterministic
</%doc>
<%namespace name="item" file="spgemm/merge_item"/>\
<%namespace name="team" file="spgemm/merge_team"/>\
#define TEAM ${lanes}
#define HEADS ${items}
#define HEADS_IN_REGISTERS ${int(registers)}
#include "spgemm.cl"
#include "merge_heads.cl"
% if lanes > 1:
#define M COLUMN
#define MIN_LANES TEAM
#include "lanes_min.cl"
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(SPGEMM_PARAMETERS, global uint *restrict sums, const uint n_sums, const uint groups_to_sum)
{
    HEADS_IN_LOCAL_MEMORY
    const uint me = get_local_id(0);
    // box: a word for each work-item's row: number of products (bits 0-12), length of A's row (13-25), empty (26), unsuited (27).
    // entries_box: the number of entries of C of each work-item's row; the other local variables are totals of the work-group.
    local uint box[${work_group}], entries_box[${work_group}], longest, group_products, group_entries, n_empty, any_wrong;
    if (get_local_id(0) == 0)
        longest = group_products = group_entries = n_empty = any_wrong = 0;
    global uint *const report = sums + n_sums + 1;
    const uint lane = get_local_id(0) % TEAM;
    const ulong slot = get_global_id(0) / TEAM;
    // Lanes without a row of C go on, as every lane takes part in exchanges and barriers.
    const bool active = slot < n_rows && !*(volatile global uint *)report;
    const ulong row = active ? SPGEMM_ROW(slot) : 0;
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;
    bool wrong = length > ${lanes * items};
    uint n_products = 0;
% for u in heads:
    HEAD(${u})
    FOR_USED_HEADS(${u}) {
        TAKE_HEAD(${u})
        if (REMAINING(${u}) > ${max_length_of_b}) {
            wrong = true;
            REMAINING(${u}) = 0;
        }
        n_products += (uint)REMAINING(${u});
        START_HEAD(${u})
    }
% endfor
% if lanes == 1:
${item.count_columns()}\
% else:
${team.count_columns(min(lanes, 4))}\
% endif
    if (active && lane == 0)
        counts[row] = count;
    wrong = wrong${f" || n_products > {max_length_of_b}" if lanes == 1 else ""};
    const bool empty = active && lane == 0 && count == 0;
    box[get_local_id(0)] = (uint)(active && wrong) << 27 | (uint)empty << 26 | min(length, 8191u) << 13 | n_products;
    entries_box[get_local_id(0)] = active && lane == 0 ? count : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    // One work-item in sixteen adds up what sixteen work-items found: products, entries, lengths, empty rows.
    if (get_local_id(0) % 16 == 0) {
        uint sub_products = 0, sub_entries = 0, sub_longest = 0, sub_empty = 0, sub_wrong = 0;
        for (uint i = get_local_id(0); i < min((uint)get_local_id(0) + 16, ${work_group}u); ++i) {
            const uint packed = box[i];
            sub_products += packed & 8191;
            sub_entries += entries_box[i];
            sub_longest = max(sub_longest, packed >> 13 & 8191);
            sub_empty += packed >> 26 & 1;
            sub_wrong |= packed >> 27;
        }
        atomic_add(&group_products, sub_products);
        atomic_add(&group_entries, sub_entries);
        atomic_max(&longest, sub_longest);
        atomic_add(&n_empty, sub_empty);
        atomic_or(&any_wrong, sub_wrong);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        if (any_wrong)
            atomic_or(report, 1);
        if (longest > *(volatile global uint *)(report + 1))
            atomic_max(report + 1, longest);
        if (n_empty)
            atomic_add(report + 2, n_empty);
        if (group_products) {
            atomic_add(report + 3 + get_group_id(0) % ${slots}, group_products);
            atomic_add(sums + 1 + get_group_id(0) / groups_to_sum, group_entries);
        }
    }
}
