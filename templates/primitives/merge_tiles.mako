<%doc>
One round of a segmented merge: each pair of runs of each segment that takes part becomes one run. Each work-item merges `items`
elements of a tile of `tile`.

Source        Ji et al., Algorithm 2, lines 16-18, with the elements of a tile in local memory
Index space   a work-group for each tile
Inputs        split: of merge_splits.mako for this round; other inputs as there. Given runs are read from x in the first round of
              their segment, all other runs from source
Local memory  `local_memory` bytes: the tile's keys, then, if `staged`, its values in their place; the place of the source element
              of each output
Result        stable, so deterministic
</%doc>
#include "merge_path.cl"
#include "segment_runs.cl"
#include "elements.cl"
<%
    def padded(place):
        # The outputs of two work-items are an odd number of words apart, so that work-items do not meet in a bank.
        return f"({place} + {place} / {items} * 2)" if items % 4 == 0 else f"({place})"
%>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint round, const uint n_rounds, const ulong n_tiles, global const I *restrict tile_segment,
    global const I *restrict tile_first, RUN_PARAMETERS global const I *restrict bounds,
% if has_runs:
    global const I *restrict tile_run, CONST_ELEMENTS(x),
% endif
    CONST_ELEMENTS(source), global const I *restrict split, ELEMENTS(target))
{
    local ${"ulong2" if staged and value_bytes == 16 else "ulong"} pool[${pool_entries}];
    local ushort origin[${n_origins}];
    local K *keys = (local K *)pool;
    const uint me = get_local_id(0);
    const ulong tile = get_group_id(0);
    const Segment s = segment_at(RUN_ARRAYS bounds, tile_segment[tile]);
    const int step = step_in(s, round, n_rounds);
    const long number = (long)tile - tile_first[tile], begin = s.begin + number * TILE, end = min(begin + TILE, s.end);
    // A work-group whose tile takes no part in the merge round does not return early: it goes on to the barriers.
    const uint n_outputs = step < 0 ? 0 : (uint)(end - begin);
% if has_runs:
    const bool from_x = step == 0 && !s.cut;
    global const K *from_keys = from_x ? x_keys : source_keys;
% if value_bytes:
    global const V *from_values = from_x ? x_values : source_values;
% endif
    const long first_run = n_outputs ? tile_run[tile] : 0;
% else:
    global const K *from_keys = source_keys;
% if value_bytes:
    global const V *from_values = source_values;
% endif
    const long first_run = number;
% endif

    // The tile merges n_a elements that begin at a_begin with elements that begin at b_begin: n_ab elements together.
    // If the tile ends in another pair of runs (`last`) than it begins in (`first`), elements of that pair's second run follow.
    Pair first = {0, 0, 0}, last = {0, 0, 0};
    long a_begin = 0, b_begin = 0, a_end = 0, last_b = 0, last_run = s.n_runs - 1;
    uint n_a = 0, n_ab = n_outputs;
    if (n_outputs) {
        first = pair_of(RUN_ARRAYS s, first_run, step);
        a_begin = split[tile];
        b_begin = first.middle + (begin - a_begin);
        n_a = (uint)(first.middle - a_begin);
        last.begin = s.end;
        if (end < s.end) {
% if has_runs:
            last_run = tile_run[tile + 1];
% else:
            last_run = number + 1;
% endif
            last = pair_of(RUN_ARRAYS s, last_run, step);
            a_end = split[tile + 1];
            if (last.begin == first.begin) {
                n_a = (uint)(a_end - a_begin);
            } else if (last.begin < end) {
                n_ab = n_a + (uint)(a_end - b_begin);
                last_b = last.middle;
            }
        }
    }
#define POSITION(place) ((place) < n_a ? a_begin + (place) : (place) < n_ab ? b_begin + ((place) - n_a) : last_b + ((place) - n_ab))
% for i in range(items):
    const uint place_${i} = ${i * work_group} + me;
% endfor
% for i in range(items):
    if (place_${i} < n_outputs)
        keys[place_${i}] = from_keys[POSITION(place_${i})];
% endfor
% if staged:
% for i in range(items):
    const V value_${i} = place_${i} < n_outputs ? from_values[POSITION(place_${i})] : (V)(0);
% endfor
% endif
    barrier(CLK_LOCAL_MEM_FENCE);

    // Merge: `origin` becomes the place in local memory from which each output element of this work-item comes.
    uint a = 0, a_last = 0, b = 0, b_last = 0, pair_last = 0;
    K key_a = 0, key_b = 0;
    const uint out_last = min(me * ${items} + ${items}, n_outputs);
    for (uint out = me * ${items}; out < out_last; ++out) {
        if (out >= pair_last) {
            // Find the pair of runs merged to output `out`, its elements in the tile, and how many of each run come before `out`.
            const long position = begin + out;
            Pair p = first;
            if (position >= last.begin)
                p = last;
            else if (position >= first.end)
                p = pair_of(RUN_ARRAYS s, run_at(RUN_ARRAYS s, first_run, last_run, position), step);
            const long of_a = p.begin < begin ? a_begin : p.begin;
            const uint pair_begin = p.begin < begin ? 0 : (uint)(p.begin - begin);
            const uint in_a = (uint)((p.end > end ? a_end : p.middle) - of_a);
            pair_last = (uint)(min(p.end, end) - begin);
            a_last = pair_begin + in_a;
            b_last = pair_last;
            const uint diagonal = out - pair_begin;
            a = pair_begin + merge_path_local(keys + pair_begin, in_a, keys + a_last, b_last - a_last, diagonal);
            b = a_last + (diagonal - (a - pair_begin));
            if (a < a_last)
                key_a = keys[a];
            if (b < b_last)
                key_b = keys[b];
        }
        const bool take_b = a == a_last || (b < b_last && key_b < key_a);
        origin[${padded("out")}] = (ushort)(take_b ? b : a);
        if (take_b) {
            if (++b < b_last)
                key_b = keys[b];
        } else if (++a < a_last) {
            key_a = keys[a];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
    const uint origin_${i} = place_${i} < n_outputs ? origin[${padded(f"place_{i}")}] : 0;
    if (place_${i} < n_outputs)
        target_keys[begin + place_${i}] = keys[origin_${i}];
% endfor
% if staged:
    barrier(CLK_LOCAL_MEM_FENCE);
    local V *values = (local V *)pool;
% for i in range(items):
    if (place_${i} < n_outputs)
        values[place_${i}] = value_${i};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
    if (place_${i} < n_outputs)
        target_values[begin + place_${i}] = values[origin_${i}];
% endfor
% elif value_bytes:
% for i in range(items):
    if (place_${i} < n_outputs)
        target_values[begin + place_${i}] = from_values[POSITION(origin_${i})];
% endfor
% endif
}
