<%doc>
Speculative symbolic phase: all rows of C are counted by merging, by work-items or by teams, with a kernel chosen by facts of
the structures. It reports whether the choice held: no row of A is longer, none names a row of B with more than `max_length_of_b`
entries and, if a work-item merges a row, none has more products.

Source        merge_item.mako and merge_team.mako
Index space   `lanes` work-items to a row
Inputs        see spgemm.cl; rows of A with at most `lanes * items` entries, others are reported; seen: n_sums + 4 + `slots` zeros
Output        seen[0]             0
              seen[1 .. n_sums]   entries of C of each `groups_to_sum` work-groups
              then, a word each   whether the choice was wrong; the longest row of A; rows without products; and `slots` words:
                                  parts of the number of products
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
void ${name}(SPGEMM_PARAMETERS, global uint *restrict seen, const uint n_sums, const uint groups_to_sum)
{
    HEADS_IN_LOCAL_MEMORY
    const uint me = get_local_id(0);
    // Findings of each work-item in a word: products in 13 bits, length of the row in 13, empty row, wrong choice. Then those of
    // the work-group.
    local uint box[${work_group}], entries_box[${work_group}], longest, n_products_of_all, n_entries_of_all, n_empty, any_wrong;
    if (get_local_id(0) == 0)
        longest = n_products_of_all = n_entries_of_all = n_empty = any_wrong = 0;
    global uint *const told = seen + n_sums + 1;
    const uint lane = get_local_id(0) % TEAM;
    const ulong slot = get_global_id(0) / TEAM;
    // No early return: every lane takes part in exchanges and barriers.
    const bool active = slot < n_rows && !*(volatile global uint *)told;
    const ulong row = active ? SPGEMM_ROW(slot) : 0;
    const I begin = active ? a_indptr[row] : 0;
    const uint length = active ? (uint)(a_indptr[row + 1] - begin) : 0;
    bool wrong = length > ${lanes * items};
    uint n_products = 0;
% for u in heads:
    HEAD(${u})
    EACH_TAKEN(${u}) {
        TAKE_HEAD(${u})
        if (LEFT(${u}) > ${max_length_of_b}) {
            wrong = true;
            LEFT(${u}) = 0;
        }
        n_products += (uint)LEFT(${u});
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
    // One work-item in sixteen adds up sixteen words.
    if (get_local_id(0) % 16 == 0) {
        uint products_seen = 0, entries_seen = 0, longest_seen = 0, empty_seen = 0, wrong_seen = 0;
        for (uint i = get_local_id(0); i < min((uint)get_local_id(0) + 16, ${work_group}u); ++i) {
            const uint it = box[i];
            products_seen += it & 8191;
            entries_seen += entries_box[i];
            longest_seen = max(longest_seen, it >> 13 & 8191);
            empty_seen += it >> 26 & 1;
            wrong_seen |= it >> 27;
        }
        atomic_add(&n_products_of_all, products_seen);
        atomic_add(&n_entries_of_all, entries_seen);
        atomic_max(&longest, longest_seen);
        atomic_add(&n_empty, empty_seen);
        atomic_or(&any_wrong, wrong_seen);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        if (any_wrong)
            atomic_or(told, 1);
        if (longest > *(volatile global uint *)(told + 1))
            atomic_max(told + 1, longest);
        if (n_empty)
            atomic_add(told + 2, n_empty);
        if (n_products_of_all) {
            atomic_add(told + 3 + get_group_id(0) % ${slots}, n_products_of_all);
            atomic_add(seen + 1 + get_group_id(0) / groups_to_sum, n_entries_of_all);
        }
    }
}
