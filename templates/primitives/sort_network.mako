<%doc>
Sort ranges of elements; a lane has `registers` elements of a range in registers. Ranges "segments": the segments of `bins` lists,
of up to `longest` elements by `lanes` lanes and shorter ones by fewer. Ranges "tiles": tiles of `tile` elements of segments that
are cut, by `lanes` lanes; tiles of segments that take an odd number of merge rounds afterwards go to spare. A network does not
keep the order of equal elements: keys alone need none; with values, pairs of a key and its place are sorted.

Source        Hou et al., "Fast segmented sort on GPUs" (sorting in registers); the network: Batcher's bitonic one, all of whose
              comparisons ascend where the first step of each merge compares mirror images
Index space   "segments": at least as many work-groups as plan has; a work-group takes segments of one list; "tiles": a team of
              `lanes` lanes for each tile from first_tile up to n_tiles
Inputs        x, which may be target: each range is read before it is written; "segments": plan, lists: of segment_classes.mako
Local memory  `local_memory` bytes: exchanges between lanes far apart, and elements on their way to adjacent lanes
Result        stable, so deterministic
</%doc>
#include "lanes_xor.cl"
% if ranges == "tiles":
#include "segment_runs.cl"
% endif
#include "elements.cl"
<%
    every = range(registers)
%>
// WORD_OF and KEY_OF turn a key into an unsigned word, in the same order as keys, and back.
#define WORD_OF(key) ${f"(as_{unsigned}(key) ^ {flip})" if flip else "(key)"}
#define KEY_OF(word) ${f"as_{key}(({unsigned})((word) ^ {flip}))" if flip else f"({key})(word)"}
#define WORD T
#define WORD_XOR lanes_xor
${comparators(places)}
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if ranges == "segments":
    const ulong lists_at, const ulong groups_at, global const long *restrict plan, global const I *restrict lists,
    global const I *restrict bounds,
% else:
    const ulong n_tiles, const ulong first_tile, global const I *restrict tile_segment, global const I *restrict tile_first,
    RUN_PARAMETERS global const I *restrict bounds,
% endif
    CONST_ELEMENTS(x), ELEMENTS(target)${", ELEMENTS(spare)" if ranges == "tiles" else ""})
{
    local T box[${box}];
% if places:
    local uint place_box[${box}];
% endif
    const uint me = get_local_id(0);
    long begin = 0;
    uint length = 0;
% if ranges == "segments":
    // The list of segments (length class) of this work-group, and the number of lanes that sort a segment of that list.
    const long group = get_group_id(0);
    uint bin = 0;
% for i in range(1, bins):
    bin += group >= plan[groups_at + ${i}];
% endfor
    const uint bits = ${min_lanes.bit_length() - 1} + bin;
    const long in_list = group - plan[groups_at + bin], slot = (in_list << (${work_group.bit_length() - 1} - bits)) + (me >> bits);
    const long list_begin = plan[lists_at + bin], n_listed = plan[lists_at + bin + 1] - list_begin;
    // No lanes sort if no segment is left for the work-group, which does not return early, as there are barriers.
    const uint lanes = (in_list << (${work_group.bit_length() - 1} - bits)) < n_listed ? 1u << bits : 0;
    const uint lane = me & ((1u << bits) - 1), team = me >> bits, stride = 1u << bits;
    if (slot < n_listed) {
        const long segment = lists[list_begin + slot];
        begin = bounds[segment];
        length = (uint)(bounds[segment + 1] - begin);
    }
% else:
    const uint lanes = ${lanes}, lane = me % ${lanes}, team = me / ${lanes}, stride = ${lanes};
    const ulong tile = first_tile + (ulong)get_group_id(0) * ${work_group // lanes} + team;
    bool to_spare = false;
    if (tile < n_tiles) {
        const Segment s = segment_at(RUN_ARRAYS bounds, tile_segment[tile]);
        begin = s.begin + (long)(tile - tile_first[tile]) * TILE;
        length = (uint)min(s.end - begin, (long)TILE);
        to_spare = s.rounds % 2;
    }
% endif
    // Registers for elements behind the end of a segment or tile get the largest word, which is sorted to the end.
% for i in every:
    const uint at_${i} = ${i} * stride + lane;
% if packed:
    T word_${i} = at_${i} < length ? (ulong)WORD_OF(x_keys[begin + at_${i}]) << 32 | at_${i} : ULONG_MAX;
% else:
    T word_${i} = at_${i} < length ? WORD_OF(x_keys[begin + at_${i}]) : ${"UINT_MAX" if t == "uint" else "ULONG_MAX"};
% endif
% if places:
    uint place_${i} = at_${i} < length ? at_${i} : UINT_MAX;
% endif
% endfor

${network(registers, lanes, lane_width, work_group, places)}\

    // Sorted elements are written by way of local memory, so that adjacent lanes write adjacent elements.
    const uint of_team = team * stride * ${registers + 1};
% for i in every:
    box[of_team + lane * ${registers + 1} + ${i}] = word_${i};
% if places:
    place_box[of_team + lane * ${registers + 1} + ${i}] = place_${i};
% endif
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in every:
    const uint slot_${i} = of_team + at_${i} + at_${i} / ${registers};
% endfor
% if value_bytes:
% for i in every:
<% place = f"(uint)box[slot_{i}]" if packed else f"place_box[slot_{i}]" %>\
    const V value_${i} = at_${i} < length ? x_values[begin + ${place}] : (V)(0);
% endfor
    // The array target may be x: all elements are read before any element is written.
    barrier(CLK_GLOBAL_MEM_FENCE);
% endif
% if ranges == "tiles":
    global K *to_keys = to_spare ? spare_keys : target_keys;
% if value_bytes:
    global V *to_values = to_spare ? spare_values : target_values;
% endif
% endif
<% to = "to" if ranges == "tiles" else "target" %>\
% for i in every:
    if (at_${i} < length) {
        ${to}_keys[begin + at_${i}] = KEY_OF(box[slot_${i}]${" >> 32" if packed else ""});
% if value_bytes:
        ${to}_values[begin + at_${i}] = value_${i};
% endif
    }
% endfor
}
<%!
    def powers_below(n):
        return [1 << i for i in reversed(range(n.bit_length() - 1))]
%>\
## The sorting network, for other templates too: it sorts WORDs, word_0 to word_(registers - 1) of each of `lanes` lanes.
## With places, a uint place_i beside each word decides between equal words. WORD_XOR(x, mask): as lanes_xor of lanes_xor.cl.
## Lanes further apart than lane_width exchange words through local WORD box[registers * work_group], places through place_box:
## the whole work-group takes part in an exchange through local memory.
## Variables: me, the work-item's number in its work-group; lane, its number among `lanes` lanes.
## `lanes` may be fewer at run time, or 0 if a work-group has nothing to sort.
<%def name="comparators(places)">\
// ORDER(i, j): puts two elements of a lane in ascending order.
// PICK(i, ...): keeps, of a lane's element and another lane's, the lesser if `lower` is true, else the greater.
% if places:
#define ORDER(i, j) { \
    const bool swap = word_##i > word_##j || (word_##i == word_##j && place_##i > place_##j); \
    const WORD word = swap ? word_##j : word_##i; \
    const uint place = swap ? place_##j : place_##i; \
    word_##j = swap ? word_##i : word_##j; \
    place_##j = swap ? place_##i : place_##j; \
    word_##i = word; \
    place_##i = place; }
#define PICK(i, word, place) { \
    const WORD other_word = word; \
    const uint other_place = place; \
    const bool less = word_##i < other_word || (word_##i == other_word && place_##i < other_place); \
    word_##i = less == lower ? word_##i : other_word; \
    place_##i = less == lower ? place_##i : other_place; }
#define EXCHANGE(i, mask) PICK(i, WORD_XOR(word_##i, mask), lanes_xor_u32(place_##i, mask))
#define EXCHANGE_MIRRORED(i, j, mask) { \
    const WORD word = WORD_XOR(word_##i, mask); \
    const uint place = lanes_xor_u32(place_##i, mask); \
    PICK(i, WORD_XOR(word_##j, mask), lanes_xor_u32(place_##j, mask)) \
    PICK(j, word, place) }
% else:
#define ORDER(i, j) { \
    const WORD word = min(word_##i, word_##j); \
    word_##j = max(word_##i, word_##j); \
    word_##i = word; }
#define PICK(i, word) { \
    const WORD other_word = word; \
    word_##i = (word_##i < other_word) == lower ? word_##i : other_word; }
#define EXCHANGE(i, mask) PICK(i, WORD_XOR(word_##i, mask))
#define EXCHANGE_MIRRORED(i, j, mask) { \
    const WORD word = WORD_XOR(word_##i, mask); \
    PICK(i, WORD_XOR(word_##j, mask)) \
    PICK(j, word) }
% endif
</%def>\
<%def name="network(registers, lanes, lane_width, work_group, places)">\
<% every = range(registers) %>\
    // Each lane sorts its own elements, in registers.
    if (lanes) {
% for size in [2 << i for i in range(registers.bit_length() - 1)]:
% for i in every:
% if i % size < size // 2:
        ORDER(${i}, ${i // size * size + size - 1 - i % size})
% endif
% endfor
% for step in powers_below(size)[1:]:
% for i in every:
% if not i & step:
        ORDER(${i}, ${i + step})
% endif
% endfor
% endfor
% endfor
    }
% if min(lanes, lane_width) > 1:
    // Merge the sorted elements of lanes: of two lanes, then of four, and so on.
    for (uint width = 1; width < min(lanes, ${lane_width}u); width *= 2) {
        bool lower = !(lane & width);
% for i in range(registers // 2):
        EXCHANGE_MIRRORED(${i}, ${registers - 1 - i}, 2 * width - 1)
% endfor
        for (uint step = width / 2; step > 0; step /= 2) {
            lower = !(lane & step);
% for i in every:
            EXCHANGE(${i}, step)
% endfor
        }
${within_lanes(registers)}\
    }
% endif
% if lanes > lane_width:
    // Sorted elements are merged across sub-groups, by way of local memory if lanes are too far apart for an exchange.
    // This loop has the same number of turns in all work-groups: as many as segments that take the most lanes need.
    uint width = ${lane_width}, far = ${lane_width};
    bool mirrored = true;
    for (uint turn = 0; turn < ${sum(range(1, (lanes // lane_width).bit_length()))}; ++turn) {
        if (width < lanes) {
% for i in every:
            box[${i * work_group} + me] = word_${i};
% if places:
            place_box[${i * work_group} + me] = place_${i};
% endif
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint other = me ^ (mirrored ? 2 * width - 1 : far);
        bool lower = !(lane & far);
        if (width < lanes) {
            uint from;
% for i in every:
            from = other + (mirrored ? ${(registers - 1 - i) * work_group} : ${i * work_group});
            PICK(${i}, box[from]${", place_box[from]" if places else ""})
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        mirrored = false;
        far /= 2;
        if (far < ${lane_width}) {
            if (width < lanes) {
% if lane_width > 1:
                for (uint step = far; step > 0; step /= 2) {
                    lower = !(lane & step);
% for i in every:
                    EXCHANGE(${i}, step)
% endfor
                }
% endif
${within_lanes(registers)}\
            }
            width *= 2;
            far = width;
            mirrored = true;
        }
    }
% endif
</%def>\
<%def name="within_lanes(registers)">\
% for step in powers_below(registers):
% for i in range(registers):
% if not i & step:
        ORDER(${i}, ${i + step})
% endif
% endfor
% endfor
</%def>\
