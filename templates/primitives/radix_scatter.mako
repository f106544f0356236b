<%doc>
Move the entries of each tile to the places of their digit, in order: the last part of a pass of a radix sort. A tile is put in
order in local memory, so that its entries of a digit leave side by side.

An entry is a word and, if there are values, a value. The digit is `bits` bits of the word from bit shift on, after the bits of
flip are inverted. A pass may also write the first entry of each key, a key being made of this digit and those of earlier passes;
the first entries of the lower keys, of the pass before, are an input.

Source        Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs"; the ranks are found by equal
              digits among lanes, as in Adinets and Merrill, "Onesweep"
Index space   a work-group for each tile of `tile` adjacent entries, `items` to a work-item
Inputs        starts: of radix_starts, for each digit and tile, and behind them the total of each digit; `few`: counts of few
              tiles as radix_count made them. Entries come by `source`. "rows": as keys; the item of an entry is its row, and
              indptr has n_rows + 1 valid offsets. "items": as keys and items. "positions": as keys; the item of an entry is its
              position. "words": as words
Local memory  `pool_bytes` bytes for exchanged entries, an offset for each of `2 ** bits` digits, a uint for each work-item
Result        stable, so deterministic
</%doc>
#include "match.cl"
#include "${"group_scan_long.cl" if wide else "group_scan.cl"}"
<%
    digits = 2 ** bits
    from_keys = source != "words"
    teams = work_group // match_width
    pairs = -(-digits // 2 // work_group)
    lower_keys = pointers and not first
    slices = max(1, work_group // digits)
    def padded(place):
        return f"{place} + {place} / {items}"
    moved_type = result if from_keys else word
%>
% if source == "rows" or lower_keys:
// The index of the first of n ascending offsets that is not below a position.
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
% if from_keys:
    const uint item_bits,
% endif
% if source == "rows":
    const long n_rows, global const I *restrict indptr,
% elif source == "items":
    global const I *restrict items,
% endif
% if value == "loaded":
    global const V *restrict values,
% endif
% if pointers:
% if lower_keys:
    const long n_lower, global const I *restrict lower,
% endif
    const long n_keys, global I *restrict pointers,
% endif
% if last and not from_keys:
    const ulong key_mask,
% endif
    global ${result} *restrict sorted${"," if value else ")"}
% if value:
    global V *restrict sorted_values)
% endif
{
    local ulong2 pool[${pool_bytes // 16}];
    local I offset[${digits}];
    local ushort local_start[${digits + 1}];
    local uint box[${work_group}];
    const uint me = get_local_id(0), lane = me % ${match_width}, team = me / ${match_width};
    const ${word} flipped = (${word})flip;
    // A team, a group of lanes that compare digits, has adjacent entries; a step takes an entry for each lane.
    const uint mine = team * ${match_width * items} + lane;
    const ulong begin = (ulong)get_group_id(0) * ${tile};
    const I end = (I)min(begin + ${tile}, n);
    const uint n_valid = (uint)(end - begin);
    const int behind_mine = (int)n_valid - (int)mine, behind_me = (int)n_valid - (int)me;

    // A work-item computes the places, in the sorted array, of the entries with its own digits, two digits at a time.
% if few:
    // As the tiles of entries are few, each work-group adds up the digit counts of all tiles, `slices` work-items to a digit.
    local I *earlier = (local I *)pool, *together = earlier + ${slices * digits};
    for (uint at = me; at < ${slices * digits}; at += ${work_group}) {
        I before = 0, sum = 0;
        for (uint t = at / ${digits}; t < get_num_groups(0); t += ${8 * slices}) {
% for i in range(8):
            const I count_${i} = t + ${i * slices} < get_num_groups(0) ? starts[((ulong)(t + ${i * slices}) << ${bits}) + at % ${digits}] : 0;
% endfor
% for i in range(8):
            before += t + ${i * slices} < get_group_id(0) ? count_${i} : 0;
            sum += count_${i};
% endfor
        }
        earlier[at] = before;
        together[at] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% else:
    global const I *totals = starts + ((ulong)get_num_groups(0) << ${bits});
% endif
% for i in range(pairs):
    const uint digit_of_mine_${i} = 2 * (me * ${pairs} + ${i});
    const bool has_${i} = digit_of_mine_${i} < ${digits};
% if few:
    I next_${i} = 0, second_${i} = 0, all_${i} = 0, all_second_${i} = 0;
    for (uint slice = 0; slice < (has_${i} ? ${slices} : 0); ++slice) {
        next_${i} += earlier[slice * ${digits} + digit_of_mine_${i}];
        second_${i} += earlier[slice * ${digits} + digit_of_mine_${i} + 1];
        all_${i} += together[slice * ${digits} + digit_of_mine_${i}];
        all_second_${i} += together[slice * ${digits} + digit_of_mine_${i} + 1];
    }
% else:
    I next_${i} = has_${i} ? starts[(ulong)digit_of_mine_${i} * get_num_groups(0) + get_group_id(0)] : 0;
    I second_${i} = has_${i} ? starts[(ulong)(digit_of_mine_${i} + 1) * get_num_groups(0) + get_group_id(0)] : 0;
    const I all_${i} = has_${i} ? totals[digit_of_mine_${i}] : 0, all_second_${i} = has_${i} ? totals[digit_of_mine_${i} + 1] : 0;
% endif
% endfor
% if few:
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
    if (me == 0)
        local_start[${digits}] = ${tile};
    global const ${word} *words_here = words + begin + mine;
% for i in range(items):
    // Positions behind the last entry of all are padded with the highest digit, which comes last in the tile.
    const ${word} word_${i} = behind_mine > ${i * match_width} ? words_here[${i * match_width}] : (${word})~flipped;
% if source == "items":
    const I item_${i} = behind_mine > ${i * match_width} ? items[begin + mine + ${i * match_width}] : 0;
% elif source == "positions":
    const I item_${i} = (I)(begin + mine + ${i * match_width});
% endif
% endfor

    // The number of all entries of lower digits, which come first, is added to the places of a digit's entries.
    {
        I lower_digits = ${" + ".join(f"all_{i} + all_second_{i}" for i in range(pairs))};
        lower_digits = (I)${"group_scan_add_long((local ulong *)pool" if wide else "group_scan_add(box"}, lower_digits);
% for i in range(pairs):
        next_${i} += lower_digits;
        second_${i} += lower_digits + all_${i};
        lower_digits += all_${i} + all_second_${i};
% endfor
    }

% if source == "rows":
    // An entry's row is the last one that begins at or before it. Marks of rows are padded: no two lanes meet in a memory bank.
    local uint *marks = (local uint *)pool;
    const long first_row = lower_bound(indptr, n_rows, begin + 1) - 1;
    for (uint i = me; i < ${tile + tile // items}; i += ${work_group})
        marks[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long row = first_row + 1 + me; row < n_rows && indptr[row] < end; row += ${work_group}) {
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
    const I item_${i} = (I)(first_row + marks[${padded(f"(mine + {i * match_width})")}]);
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
% if from_keys:
% for i in range(items):
% if last:
    const ${result} entry_${i} = (${result})item_${i};
% else:
    const ${result} entry_${i} = (${result})(word_${i} >> ${bits}) << item_bits | (${result})item_${i};
% endif
% endfor
% endif

    // Count the digits of each team of lanes, and for each entry the equal digits before the entry in its team.
    local ushort *counters = (local ushort *)pool;
    local uint *two = (local uint *)pool;
    for (uint i = me; i < ${-(-teams * digits // 8)}; i += ${work_group})
        pool[i] = (ulong2)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    // `to` holds the digit of an entry, and in its higher bits the entry's rank among equal digits.
% for i in range(items):
    uint to_${i} = (uint)((word_${i} ^ flipped) >> shift) & ${digits - 1};
    {
        const uint same = lanes_match(box, to_${i});
        const uint before = popcount(same & ((1u << lane) - 1)), n_earlier = counters[team * ${digits} + to_${i}];
        lanes_fence();
        if (before == 0)
            counters[team * ${digits} + to_${i}] = (ushort)(n_earlier + popcount(same));
        to_${i} |= (n_earlier + before) << 16;
        computed_now(to_${i})
    }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);

    // The first place in the tile of each digit of each team of lanes: two digits at a time, as a tile's counts fit in 16 bits.
    uint start = 0;
% for i in range(pairs):
    uint total_${i} = 0;
    if (has_${i}) {
        #pragma unroll 8
        for (uint t = 0; t < ${teams}; ++t)
            total_${i} += two[t * ${digits // 2} + me * ${pairs} + ${i}];
        start += (total_${i} & 0xffff) + (total_${i} >> 16);
    }
% endfor
    start = group_scan_add(box, start);
% for i in range(pairs):
    if (has_${i}) {
        const uint first = total_${i} & 0xffff, last = total_${i} >> 16;
        uint packed = start | (start + first) << 16;
        #pragma unroll 8
        for (uint t = 0; t < ${teams}; ++t) {
            const uint count = two[t * ${digits // 2} + me * ${pairs} + ${i}];
            two[t * ${digits // 2} + me * ${pairs} + ${i}] = packed;
            packed += count;
        }
        local_start[digit_of_mine_${i}] = (ushort)start;
        local_start[digit_of_mine_${i} + 1] = (ushort)(start + first);
        offset[digit_of_mine_${i}] = next_${i} - start;
        offset[digit_of_mine_${i} + 1] = second_${i} - start - first;
        start += first + last;
    }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
% if from_keys:
    const uint digit_${i} = to_${i} & 0xffff;
% endif
    to_${i} = (to_${i} >> 16) + counters[team * ${digits} + (to_${i} & 0xffff)];
    computed_now(to_${i})
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);

    // The tile's entries are exchanged in local memory, part by part, so that the entries of a digit are stored side by side.
% if from_keys:
    local ushort *digit_at = (local ushort *)pool;
% for i in range(items):
    digit_at[to_${i}] = (ushort)digit_${i};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items):
    const I at_${i} = offset[digit_at[${i * work_group} + me]] + (I)(${i * work_group} + me);
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
<% parts, moved = entry_parts, "entry" if from_keys else "word" %>\
    local ${moved_type} *exchanged = (local ${moved_type} *)pool;
% for part in range(parts):
% for i in range(items):
% if parts > 1:
    if (to_${i} / ${tile // parts} == ${part})
% endif
        exchanged[to_${i} % ${tile // parts}] = ${moved}_${i};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items // parts * part, items // parts * (part + 1)):
    const ${moved_type} moved_${i} = exchanged[(${i * work_group} + me) % ${tile // parts}];
% if not from_keys:
    const I at_${i} = offset[(uint)((moved_${i} ^ flipped) >> shift) & ${digits - 1}] + (I)(${i * work_group} + me);
% endif
    if (behind_me > ${i * work_group})
        sorted[at_${i}] = ${f"({result})(moved_{i} & key_mask)" if last and not from_keys else f"moved_{i}"};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% endfor
% if value:
<% parts = value_parts %>\
    local V *carried = (local V *)pool;
% for part in range(parts):
% for i in range(items):
% if parts > 1:
    if (to_${i} / ${tile // parts} == ${part})
% endif
        carried[to_${i} % ${tile // parts}] = ${f"values[behind_mine > {i * match_width} ? begin + mine + {i * match_width} : 0]" if value == "loaded" else f"(V)(begin + mine + {i * match_width})"};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items // parts * part, items // parts * (part + 1)):
    if (behind_me > ${i * work_group})
        sorted_values[at_${i}] = carried[(${i * work_group} + me) % ${tile // parts}];
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% endfor
% endif
% if first and pointers:

    // pointers[d], the sorted place of the first entry of all with digit d, is the first place that tile 0 has for digit d.
    if (get_group_id(0) == 0) {
        for (uint d = me; d < ${digits} && d < n_keys; d += ${work_group})
            pointers[d] = offset[d] + local_start[d];
        if (me == 0)
            pointers[n_keys] = (I)n;
    }
% elif lower_keys:

    // The first entry of a key, of this digit and a lower key, is the first with this digit from the lower key's first entry on.
    long low = lower_bound(lower, n_lower, begin);
    const long low_end = end == (I)n ? n_lower : lower_bound(lower, n_lower, end);
    local ushort *place_at = (local ushort *)pool;
    if (low < low_end) {
% for i in range(items):
        place_at[to_${i}] = (ushort)(mine + ${i * match_width});
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (; low < low_end; ++low) {
        const uint position = (uint)(lower[low] - begin);
        for (uint d = me; d < ${digits} && d * n_lower + low < n_keys; d += ${work_group}) {
            uint at = local_start[d], high = local_start[d + 1];
            while (at < high) {
                const uint middle = (at + high) / 2;
                if (place_at[middle] < position)
                    at = middle + 1;
                else
                    high = middle;
            }
            pointers[d * n_lower + low] = offset[d] + (I)at;
        }
    }
    if (get_group_id(0) == 0 && me == 0)
        pointers[n_keys] = (I)n;
% endif
}
