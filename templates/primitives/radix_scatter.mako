<%doc>
Move the entries of each tile to where the entries of their digit go, in order: the second half of a pass of a radix sort.

An entry is a word and, where there are values, a value. The digit is ${bits} bits of the word from bit shift on, after the bits
of flip are inverted. A pass may also tell
where the entries of each key begin, a key being what this digit and those of earlier passes make up; it knows from the pass before
where the entries of each lower key began.

Source        Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs"; the ranks are found by equal
              digits among lanes, as in Adinets and Merrill, "Onesweep"
Index space   a work-group for each tile of ${tile} adjacent entries, ${items} to a work-item
Inputs        starts: the exclusive scan of radix_count's counts. Entries come as ${{
"rows": "keys; the item of an entry is its row, and indptr has n_rows + 1 valid offsets",
"items": "keys and items",
"words": "words"}[source]}
Local memory  ${pool_bytes} bytes for what is exchanged, an offset for each of ${2 ** bits} digits, a uint for each work-item
Result        stable, so deterministic
</%doc>
#include "match.cl"
#include "group_scan.cl"
<%
    digits = 2 ** bits
    made = source != "words"
    teams = work_group // match_width
    per_item = -(-digits // 2 // work_group)
    def padded(place):
        return f"({place} + {place} / {items})"
%>
% if source == "rows" or pointers and not first:
// The first of n ascending offsets that is not below a position.
long lower_bound(global const I *offsets, const long n, const long position)
{
    long low = 0, high = n;
    while (low < high) {
        const long middle = (low + high) / 2;
        if (offsets[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

% endif
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const uint shift, const ulong flip, global const ${word} *restrict words, global const I *restrict starts,
% if made:
    const uint item_bits,
% endif
% if source == "rows":
    const long n_rows, global const I *restrict indptr,
% elif source == "items":
    global const I *restrict items,
% endif
% if value == "given":
    global const V *restrict values,
% endif
% if pointers:
% if not first:
    const long n_lower, global const I *restrict lower,
% endif
    const long n_keys, global I *restrict pointers,
% endif
% if last and not made:
    const ulong kept,
% endif
    global ${result} *restrict sorted${"," if value else ")"}
% if value:
    global V *restrict sorted_values)
% endif
{
    local ulong pool[${pool_bytes // 8}];
    local I offset[${digits}];
    local ushort local_start[${digits + 1}];
    local uint box[${work_group}];
    const uint me = get_local_id(0), lane = me % ${match_width}, team = me / ${match_width};
    const ulong begin = (ulong)get_group_id(0) * ${tile};
    const uint here = (uint)min(n - begin, (ulong)${tile});
    const ${word} flipped = (${word})flip;
    // A team of lanes has adjacent entries; each step takes as many of them as there are lanes.
    const uint mine = team * ${match_width * items} + lane;
% for i in range(items):
    const uint place_${i} = mine + ${i * match_width};
    const bool present_${i} = place_${i} < here;
    const ${word} word_${i} = present_${i} ? words[begin + place_${i}] : 0;
% endfor

% if source == "rows":
    // The row of each entry: the last row that begins at or before it. Marks are padded, so that no two lanes meet in a bank.
    local uint *marks = (local uint *)pool;
    const long first_row = lower_bound(indptr, n_rows, begin + 1) - 1, last_row = lower_bound(indptr, n_rows, begin + here) - 1;
    for (uint i = me; i < ${tile + tile // items}; i += ${work_group})
        marks[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long row = first_row + 1 + me; row <= last_row; row += ${work_group}) {
        const uint place = (uint)(indptr[row] - begin);
        atomic_max(marks + ${padded("place")}, (uint)(row - first_row));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint latest = 0;
% for i in range(items):
    latest = max(latest, marks[me * ${items + 1} + ${i}]);
% endfor
    latest = group_scan_max(box, latest);
% for i in range(items):
    latest = max(latest, marks[me * ${items + 1} + ${i}]);
    marks[me * ${items + 1} + ${i}] = latest;
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
    const I item_${i} = (I)(first_row + marks[${padded(f"place_{i}")}]);
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% elif source == "items":
% for i in range(items):
    const I item_${i} = present_${i} ? items[begin + place_${i}] : 0;
% endfor
% endif

    // Count the digits of each team, and how many equal ones stand before each entry in its team.
    local ushort *counters = (local ushort *)pool;
    local uint *pairs = (local uint *)pool;
    for (uint i = me; i < ${teams * digits // 2}; i += ${work_group})
        pairs[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
    // Entries that are not there come last in the tile, and get the last digit.
    const uint digit_${i} = present_${i} ? (uint)((word_${i} ^ flipped) >> shift) & ${digits - 1} : ${digits - 1};
    uint rank_${i};
    {
        const uint same = lanes_match(box, digit_${i});
        const uint before = popcount(same & ((1u << lane) - 1)), known = counters[team * ${digits} + digit_${i}];
        lanes_fence();
        if (before == 0)
            counters[team * ${digits} + digit_${i}] = (ushort)(known + popcount(same));
        lanes_fence();
        rank_${i} = known + before;
    }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);

    // Where each digit of each team begins in the tile: two digits at a time, as the counts of a tile fit in 16 bits.
% for i in range(per_item):
    uint total_${i} = 0;
    if (me * ${per_item} + ${i} < ${digits // 2})
        for (uint t = 0; t < ${teams}; ++t) {
            const uint count = pairs[t * ${digits // 2} + me * ${per_item} + ${i}];
            pairs[t * ${digits // 2} + me * ${per_item} + ${i}] = total_${i};
            total_${i} += count;
        }
% endfor
    uint start = 0;
% for i in range(per_item):
    start += (total_${i} & 0xffff) + (total_${i} >> 16);
% endfor
    start = group_scan_add(box, start);
% for i in range(per_item):
    if (me * ${per_item} + ${i} < ${digits // 2}) {
        const uint d = 2 * (me * ${per_item} + ${i}), second = start + (total_${i} & 0xffff), both = start | second << 16;
        for (uint t = 0; t < ${teams}; ++t)
            pairs[t * ${digits // 2} + d / 2] += both;
        local_start[d] = (ushort)start;
        local_start[d + 1] = (ushort)second;
        offset[d] = starts[(ulong)d * get_num_groups(0) + get_group_id(0)] - start;
        offset[d + 1] = starts[(ulong)(d + 1) * get_num_groups(0) + get_group_id(0)] - second;
        start = second + (total_${i} >> 16);
    }
% endfor
    if (me == 0)
        local_start[${digits}] = ${tile};
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
    const uint to_${i} = counters[team * ${digits} + digit_${i}] + rank_${i};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);

    // Exchange words in local memory, so that those of a digit leave side by side.
    local ${result} *exchanged = (local ${result} *)pool;
    local ushort *digit_at = (local ushort *)(exchanged + ${tile});
% if pointers and not first:
    local ushort *place_at = digit_at + ${tile};
% endif
% for i in range(items):
<%
    if made and last:
        put = f"(({result})item_{i})"
    elif made:
        put = f"(({result})(word_{i} >> {bits}) << item_bits | ({result})item_{i})"
    elif last:
        put = f"(({result})(word_{i} & kept))"
    else:
        put = f"word_{i}"
%>\
    exchanged[to_${i}] = ${put};
    digit_at[to_${i}] = (ushort)digit_${i};
% if pointers and not first:
    place_at[to_${i}] = (ushort)place_${i};
% endif
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
    const I at_${i} = offset[digit_at[${i * work_group} + me]] + (I)(${i * work_group} + me);
    if (${i * work_group} + me < here)
        sorted[at_${i}] = exchanged[${i * work_group} + me];
% endfor
% if pointers:

    // The entries of a key begin where one with this digit would go that stands where those of the lower key began.
% if first:
    const long lower_begin = 0, lower_end = get_group_id(0) == 0;
% else:
    const long lower_begin = lower_bound(lower, n_lower, begin);
    const long lower_end = get_group_id(0) + 1 == get_num_groups(0) ? n_lower : lower_bound(lower, n_lower, begin + ${tile});
% endif
    for (long low = lower_begin; low < lower_end; ++low)
        for (uint d = me; d < ${digits} && d * ${"1" if first else "n_lower"} + low < n_keys; d += ${work_group}) {
            uint at = local_start[d];
% if not first:
            const uint position = (uint)(lower[low] - begin);
            uint high = local_start[d + 1];
            while (at < high) {
                const uint middle = (at + high) / 2;
                if (place_at[middle] < position)
                    at = middle + 1;
                else
                    high = middle;
            }
% endif
            pointers[d * ${"1" if first else "n_lower"} + low] = offset[d] + (I)at;
        }
    if (get_group_id(0) == 0 && me == 0)
        pointers[n_keys] = (I)n;
% endif
% if value:

    barrier(CLK_LOCAL_MEM_FENCE);
    local V *moved = (local V *)pool;
% for i in range(items):
% if value == "given":
    if (present_${i})
        moved[to_${i}] = values[begin + place_${i}];
% else:
    moved[to_${i}] = (V)(begin + place_${i});
% endif
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
    if (${i * work_group} + me < here)
        sorted_values[at_${i}] = moved[${i * work_group} + me];
% endfor
% endif
}
