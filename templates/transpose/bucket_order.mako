<%doc>
Put the entries of each bucket (of adjacent columns) in order of their columns, and tell where each column begins: a bucket of up
to `tile` entries by one work-group, longer ones by parts. Each part counts the columns of its whole bucket, if that has up to
`alone` parts, or with `small`; else it adds up what bucket_split counted.

Source        the last pass of a radix sort by the highest digit first; ranks as in bucket_move
Index space   a work-group for each part of a bucket, of `tile` entries, `items` to a work-item; further ones do nothing
Inputs        bounds, moved: of bucket_move; starts[part * 2 ** bits + column] and of_runs, of bucket_split, for buckets of more
              parts
Local memory  `pool_bytes` bytes for exchanged entries, a digit for each, an offset for each of `2 ** bits` columns, a uint for
              each work-item
Result        stable, so deterministic
</%doc>
<%def name="ranks(items, digits, teams, pairs, work_group, apart=False)">
    // Count each team of lanes' digits, and rank entries: an entry's rank is how many equal digits come before it in its team.
    local ushort *counters = (local ushort *)pool;
    local uint *two = (local uint *)pool;
    for (uint i = me; i < ${-(-teams * digits // 8)}; i += ${work_group})
        pool[i] = (ulong2)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    // to_i holds the digit (column within the bucket) of entry i in the lower 16 bits, and gets the entry's rank in the upper 16.
% for i in range(items):
    uint to_${i} = digit_${i};
% endfor
% if apart:
    // Buckets of columns are seldom full: teams of lanes without entries skip the ranking, and all steps that depend on ranks.
    const bool are_there = lanes_any(behind_mine > 0);
    if (are_there)
% endif
    {
% for i in range(items):
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
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // Scan the counts for where a team's digit begins in the tile: two digits at a time, as counts of a tile fit 16 bits.
    uint start = 0;
% for i in range(pairs):
    uint total_${i} = 0;
    if (has_${i}) {
        #pragma unroll 8
        for (uint t = 0; t < ${teams}; ++t)
            total_${i} += two[t * ${digits // 2} + me * ${pairs} + ${i}];
    }
    const uint first_${i} = total_${i} & 0xffff, last_${i} = total_${i} >> 16;
    start += first_${i} + last_${i};
% endfor
    start = group_scan_add(box, start);
% for i in range(pairs):
    const uint start_${i} = start;
    if (has_${i}) {
        uint packed = start | (start + first_${i}) << 16;
        #pragma unroll 8
        for (uint t = 0; t < ${teams}; ++t) {
            const uint count = two[t * ${digits // 2} + me * ${pairs} + ${i}];
            two[t * ${digits // 2} + me * ${pairs} + ${i}] = packed;
            packed += count;
        }
    }
    start += first_${i} + last_${i};
% endfor
</%def>\
<%def name="placed(items, digits, apart=False)">
    // to_i becomes the place of entry i within the tile; digit_at holds the digit of the entry at a place.
% if apart:
    if (are_there)
% endif
    {
% for i in range(items):
    {
        const uint digit = to_${i} & 0xffff;
        to_${i} = (to_${i} >> 16) + counters[team * ${digits} + digit];
        computed_now(to_${i})
        digit_at[to_${i}] = (ushort)digit;
    }
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
</%def>\
<%def name="exchange(type, target, source, items, work_group, match_width, tile, parts, begin='')">
    // Entries are exchanged through local memory, part by part, so that entries of a digit are stored side by side.
    {
        local ${type} *exchanged = (local ${type} *)pool;
% for part in range(parts):
% for i in range(items):
        if (behind_mine > ${i * match_width}${f" && to_{i} / {tile // parts} == {part}" if parts > 1 else ""})
            exchanged[to_${i} % ${tile // parts}] = ${source.format(i * match_width, i)};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(items // parts * part, items // parts * (part + 1)):
        if (behind_me > ${i * work_group})
            ${target}[(${begin}offset[digit_at[${i * work_group} + me]]) + (${i * work_group} + me)]
                = exchanged[(${i * work_group} + me) % ${tile // parts}];
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% endfor
    }
</%def>\
#include "match.cl"
#include "group_scan.cl"
#include "bucket_part.cl"
#include "prefetch.cl"
<%
    digits = 2 ** bits
    teams = work_group // match_width
    pairs = -(-digits // 2 // work_group)
%>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n, const uint n_buckets, const uint row_bits, const long n_cols, global const uint *restrict bounds,
% if not small:
    global const uint *restrict starts, global const uint *restrict of_runs,
% endif
    global const R *restrict moved,
% if not record:
    global const V *restrict moved_values,
% endif
    global I *restrict pointers, global I *restrict rows, global V *restrict values)
{
    local ulong2 pool[${pool_bytes // 16}];
    local uint offset[${digits}];
    local ushort digit_at[${tile}];
    local uint box[${work_group}];
    local uint bucket_box;
    const uint me = get_local_id(0), lane = me % ${match_width}, team = me / ${match_width}, part = get_group_id(0);
    const uint mine = team * ${match_width * items} + lane;
    const bool active = part < bounds[2 * n_buckets + 1];
    const uint bucket = bucket_of_part(&bucket_box, bounds + n_buckets + 1, n_buckets, part);
    const uint of_bucket = bounds[bucket], end = bounds[bucket + 1];
    const bool whole = end - of_bucket <= ${tile};
    const uint parts_before = bounds[n_buckets + 1 + bucket];
    const uint begin = of_bucket + (active ? (part - parts_before) * ${tile} : 0);
    const uint n_valid = active ? min(end - begin, ${tile}u) : 0;
    const int behind_mine = (int)n_valid - (int)mine, behind_me = (int)n_valid - (int)me;
% if skips:
    if (n_valid == 0 && !(active && whole))
        return;
% endif
    global const R *words_here = moved + ((ulong)begin + mine);
% if not record:
    global const V *values_here = moved_values + ((ulong)begin + mine);
% endif
% for i in range(items):
    // Positions behind the tile's last entry are padded with the highest digit (column), which comes last in the tile.
    const W word_${i} = behind_mine > ${i * match_width} ? WORD_OF(words_here[${i * match_width}]) : (W)${digits - 1} << row_bits;
% endfor
% if not record:
    if (me * ${line}u < n_valid) {
        PREFETCH_TO_SHARED(moved_values + ((ulong)begin + me * ${line}u))
    }
% endif
% for i in range(pairs):
    const uint digit_of_mine_${i} = 2 * (me * ${pairs} + ${i});
    const bool has_${i} = digit_of_mine_${i} < ${digits};
    uint next_${i} = begin, second_${i} = begin;
% endfor
    // For a bucket of several parts each column's entries are counted, in the parts before this part and in all parts.
    const uint n_parts = bounds[n_buckets + 2 + bucket] - parts_before;
    const bool several = active && !whole, counts = several${"" if small else f" && n_parts <= {alone}"};
% if skips:
    if (several)
% endif
    {
% for i in range(pairs):
        uint before_${i} = 0, before_second_${i} = 0, all_${i} = 0, all_second_${i} = 0;
% endfor
% if skips and not small:
        if (counts)
% endif
        {
            local uint *before = (local uint *)pool, *totals = before + ${digits};
            for (uint i = me; i < ${2 * digits}; i += ${work_group})
                before[i] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            uint k = (counts ? of_bucket : end) + me;
            for (; k + ${3 * work_group} < end; k += ${4 * work_group}) {
% for i in range(4):
                const W word_${i} = WORD_OF(moved[k + ${i * work_group}]);
% endfor
% for i in range(4):
                atomic_inc(totals + (uint)(word_${i} >> row_bits));
                if (k + ${i * work_group} < begin)
                    atomic_inc(before + (uint)(word_${i} >> row_bits));
% endfor
            }
            for (; k < end; k += ${work_group}) {
                const uint digit = (uint)(WORD_OF(moved[k]) >> row_bits);
                atomic_inc(totals + digit);
                if (k < begin)
                    atomic_inc(before + digit);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(pairs):
            if (has_${i}) {
                before_${i} = before[digit_of_mine_${i}];
                before_second_${i} = before[digit_of_mine_${i} + 1];
                all_${i} = totals[digit_of_mine_${i}];
                all_second_${i} = totals[digit_of_mine_${i} + 1];
            }
% endfor
        }
% if not small:
        if (several && !counts) {
            const uint first_run = bounds[2 * n_buckets + 2 + bucket], behind_runs = bounds[2 * n_buckets + 3 + bucket];
            const uint run = first_run + (part - parts_before) / RUN_OF(n_parts);
% for i in range(pairs):
            if (has_${i}) {
                for (uint r = first_run; r < behind_runs; r += 4) {
% for u in range(4):
                    const bool has_run_${u} = r + ${u} < behind_runs;
                    const uint one_${u} = has_run_${u} ? of_runs[((ulong)(r + ${u}) << ${bits}) + digit_of_mine_${i}] : 0;
                    const uint second_${u} = has_run_${u} ? of_runs[((ulong)(r + ${u}) << ${bits}) + digit_of_mine_${i} + 1] : 0;
% endfor
% for u in range(4):
                    before_${i} += r + ${u} < run ? one_${u} : 0;
                    before_second_${i} += r + ${u} < run ? second_${u} : 0;
                    all_${i} += one_${u};
                    all_second_${i} += second_${u};
% endfor
                }
                before_${i} += starts[((ulong)part << ${bits}) + digit_of_mine_${i}];
                before_second_${i} += starts[((ulong)part << ${bits}) + digit_of_mine_${i} + 1];
            }
% endfor
        }
% endif
        uint lower = of_bucket + group_scan_add(box, ${" + ".join(f"all_{i} + all_second_{i}" for i in range(pairs))});
% for i in range(pairs):
        if (has_${i} && several) {
            next_${i} = lower + before_${i};
            second_${i} = lower + all_${i} + before_second_${i};
            const long column = ((long)bucket << ${bits}) + digit_of_mine_${i};
            if (begin == of_bucket && column < n_cols)
                pointers[column] = (I)lower;
            if (begin == of_bucket && column + 1 < n_cols)
                pointers[column + 1] = (I)(lower + all_${i});
        }
        lower += all_${i} + all_second_${i};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% for i in range(items):
    const uint digit_${i} = (uint)(word_${i} >> row_bits);
% endfor
${ranks(items, digits, teams, pairs, work_group, apart)}
% for i in range(pairs):
    if (has_${i}) {
        // The entries of a bucket (of adjacent columns) that is one part stay in the bucket's range of the arrays of entries.
        offset[digit_of_mine_${i}] = next_${i} - (whole ? 0 : start_${i});
        offset[digit_of_mine_${i} + 1] = second_${i} - (whole ? 0 : start_${i} + first_${i});
        const long column = ((long)bucket << ${bits}) + digit_of_mine_${i};
        if (active && whole && column < n_cols)
            pointers[column] = (I)(begin + start_${i});
        if (active && whole && column + 1 < n_cols)
            pointers[column + 1] = (I)(begin + start_${i} + first_${i});
    }
% endfor
    if (part == 0 && me == 0)
        pointers[n_cols] = (I)n;
    barrier(CLK_LOCAL_MEM_FENCE);
${placed(items, digits, apart)}
<% value = "VALUE_OF(words_here[{0}])" if record else "values_here[{0}]" %>\
${exchange("I", "rows", "(I)(word_{1} & (((W)1 << row_bits) - 1))", items, work_group, match_width, tile, row_parts, "whole ? begin : ")}
${exchange("V", "values", value, items, work_group, match_width, tile, value_parts, "whole ? begin : ")}
}
