<%doc>
Move the entries of each chunk to their buckets, in order: tile by tile, each put in order in local memory first, so that entries
of a bucket leave side by side.

An entry is a word, its column within the bucket above its row, and a value. With `last` buckets are columns: rows are written in
place of words, and pointers.

Source        a pass of a radix sort by the highest digit; Satish, Harris and Garland, "Designing efficient sorting algorithms for
              manycore GPUs"; ranks by equal digits among lanes, as in Adinets and Merrill, "Onesweep"
Index space   a work-group for each chunk of `tiles` tiles of `tile` adjacent entries, `items` to a work-item
Inputs        starts, rows: of bucket_starts or, with `small`, of bucket_count; indptr has n_rows + 1 valid offsets
Output        bounds: where each of `2 ** bits` buckets begins, and the end; behind them how many parts of `capacity` entries
              those before it take, each at least one, and the sum; behind them how many runs of `run` parts those before it
              take, none for a bucket of one part, and the sum
Local memory  `pool_bytes` bytes for exchanged entries, a bucket for each, an offset for each bucket, a uint for each work-item
Result        stable, so deterministic
</%doc>
<%namespace name="order" file="transpose/bucket_order"/>\
#include "match.cl"
#include "group_scan.cl"
<%
    digits = 2 ** bits
    teams = work_group // match_width
    pairs = -(-digits // 2 // work_group)
    slices = work_group // digits
    def padded(place):
        return f"{place} + {place} / {items}"
%>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n, const uint shift, const uint row_bits, const long n_rows, global const I *restrict indptr,
    global const I *restrict indices, global const uint *restrict starts, global const I *restrict rows,
% if not positions:
    global const V *restrict values,
% endif
    global uint *restrict bounds,
% if last:
    const long n_cols, global I *restrict pointers,
% endif
    global W *restrict moved, global V *restrict moved_values)
{
    local ulong2 pool[${pool_bytes // 16}];
    local uint offset[${digits}];
    local ushort digit_at[${tile}];
    local uint box[${work_group}];
    const uint me = get_local_id(0), lane = me % ${match_width}, team = me / ${match_width};
    // A team of lanes has adjacent entries; each step takes as many of them as there are lanes.
    const uint mine = team * ${match_width * items} + lane;
    const ulong chunk = (ulong)get_group_id(0) * ${tile * tiles};

    // A work-item finds where the entries of its buckets, two by two, go.
% if small:
    // Few chunks: each work-group adds their counts up by itself, `slices` work-items to a bucket.
    local uint *before = (local uint *)pool, *all = before + ${work_group};
    {
        uint earlier = 0, total = 0;
        for (uint c = me / ${digits}; c < (me < ${digits * slices} ? get_num_groups(0) : 0); c += ${slices}) {
            const uint count = starts[(c << ${bits}) + me % ${digits}];
            earlier += c < get_group_id(0) ? count : 0;
            total += count;
        }
        before[me] = earlier;
        all[me] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(pairs):
    const uint digit_of_mine_${i} = 2 * (me * ${pairs} + ${i});
    const bool has_${i} = digit_of_mine_${i} < ${digits};
    uint next_${i} = 0, second_${i} = 0, all_${i} = 0, all_second_${i} = 0;
    for (uint slice = 0; slice < (has_${i} ? ${slices} : 0); ++slice) {
        next_${i} += before[slice * ${digits} + digit_of_mine_${i}];
        second_${i} += before[slice * ${digits} + digit_of_mine_${i} + 1];
        all_${i} += all[slice * ${digits} + digit_of_mine_${i}];
        all_second_${i} += all[slice * ${digits} + digit_of_mine_${i} + 1];
    }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% else:
    global const uint *starts_here = starts + ((ulong)get_group_id(0) << ${bits});
    global const uint *totals = starts + ((ulong)get_num_groups(0) << ${bits});
% for i in range(pairs):
    const uint digit_of_mine_${i} = 2 * (me * ${pairs} + ${i});
    const bool has_${i} = digit_of_mine_${i} < ${digits};
    uint next_${i} = has_${i} ? starts_here[digit_of_mine_${i}] : 0;
    uint second_${i} = has_${i} ? starts_here[digit_of_mine_${i} + 1] : 0;
    const uint all_${i} = has_${i} ? totals[digit_of_mine_${i}] : 0;
    const uint all_second_${i} = has_${i} ? totals[digit_of_mine_${i} + 1] : 0;
% endfor
% endif
% for i in range(pairs):
    const uint parts_${i} = max((all_${i} + ${capacity - 1}) / ${capacity}, 1u);
    const uint parts_second_${i} = max((all_second_${i} + ${capacity - 1}) / ${capacity}, 1u);
    const uint runs_${i} = has_${i} && parts_${i} > 1 ? (parts_${i} + ${run - 1}) / ${run} : 0;
    const uint runs_second_${i} = has_${i} && parts_second_${i} > 1 ? (parts_second_${i} + ${run - 1}) / ${run} : 0;
% endfor
    {
        uint lower = group_scan_add(box, ${" + ".join(f"all_{i} + all_second_{i}" for i in range(pairs))});
        uint parts = group_scan_add(box, ${" + ".join(f"has_{i} * (parts_{i} + parts_second_{i})" for i in range(pairs))});
        uint runs = group_scan_add(box, ${" + ".join(f"runs_{i} + runs_second_{i}" for i in range(pairs))});
% for i in range(pairs):
        next_${i} += lower;
        second_${i} += lower + all_${i};
        if (has_${i} && get_group_id(0) == 0) {
            bounds[digit_of_mine_${i}] = lower;
            bounds[digit_of_mine_${i} + 1] = lower + all_${i};
            bounds[${digits + 1} + digit_of_mine_${i}] = parts;
            bounds[${digits + 1} + digit_of_mine_${i} + 1] = parts + parts_${i};
            bounds[${2 * digits + 2} + digit_of_mine_${i}] = runs;
            bounds[${2 * digits + 2} + digit_of_mine_${i} + 1] = runs + runs_${i};
% if last:
            if (digit_of_mine_${i} < n_cols)
                pointers[digit_of_mine_${i}] = (I)lower;
            if (digit_of_mine_${i} + 1 < n_cols)
                pointers[digit_of_mine_${i} + 1] = (I)(lower + all_${i});
% endif
            if (digit_of_mine_${i} + 2 == ${digits}) {
                bounds[${digits}] = n;
                bounds[${2 * digits + 1}] = parts + parts_${i} + parts_second_${i};
                bounds[${3 * digits + 2}] = runs + runs_${i} + runs_second_${i};
% if last:
                pointers[n_cols] = (I)n;
% endif
            }
        }
        lower += all_${i} + all_second_${i};
        parts += parts_${i} + parts_second_${i};
        runs += runs_${i} + runs_second_${i};
% endfor
    }

    long first_row = rows[get_group_id(0)];
    for (uint turn = 0; turn < ${tiles}; ++turn) {
        const ulong begin = min(chunk + turn * ${tile}, (ulong)n);
        const ulong end = min(begin + ${tile}, (ulong)n);
        const uint here = (uint)(end - begin);
        global const I *columns = indices + (begin + mine);
% if not positions:
        global const V *values_here = values + (begin + mine);
% endif
% for i in range(items):
        // Entries that are not there come last in the tile, and get the last digit.
        const I column_${i} = mine + ${i * match_width} < here ? columns[${i * match_width}] : (I)${digits - 1} << shift;
% endfor

        // The row of each entry: the last row that begins at or before it. Marks are padded, so that no two lanes meet in a bank.
        local uint *marks = (local uint *)pool;
        for (uint i = me; i < ${tile + tile // items}; i += ${work_group})
            marks[i] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (long row = first_row + 1 + me; row < n_rows && indptr[row] < end; row += ${row_unroll * work_group}) {
% for i in range(row_unroll):
            const ulong begins_${i} = row + ${i * work_group} < n_rows ? (ulong)indptr[row + ${i * work_group}] : end;
% endfor
% for i in range(row_unroll):
            if (begins_${i} < end) {
                const uint place = (uint)(begins_${i} - begin);
                atomic_max(marks + ${padded("place")}, (uint)(row + ${i * work_group} - first_row));
            }
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint latest = 0;
% for i in range(items):
        latest = max(latest, marks[me * ${items + 1} + ${i}]);
% endfor
        const uint mine_latest = latest;
        latest = group_scan_max(box, latest);
        if (me == ${work_group - 1})
            box[0] = max(latest, mine_latest);
% for i in range(items):
        latest = max(latest, marks[me * ${items + 1} + ${i}]);
        marks[me * ${items + 1} + ${i}] = latest;
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint last_mark = box[0];
% for i in range(items):
        const uint mark_${i} = marks[${f"mine + mine / {items} + {i * match_width * (items + 1) // items}" if match_width % items == 0 else padded(f"(mine + {i * match_width})")}];
        const uint digit_${i} = (uint)(column_${i} >> shift);
% if last:
        const W entry_${i} = (W)(first_row + mark_${i});
% else:
        const W entry_${i} = (W)(column_${i} & (((I)1 << shift) - 1)) << row_bits | (W)(first_row + mark_${i});
% endif
% endfor
        first_row += last_mark;
        barrier(CLK_LOCAL_MEM_FENCE);

${order.ranks(items, digits, teams, pairs, work_group)}
% for i in range(pairs):
        if (has_${i}) {
            offset[digit_of_mine_${i}] = next_${i} - start_${i};
            offset[digit_of_mine_${i} + 1] = second_${i} - start_${i} - first_${i};
            next_${i} += first_${i};
            second_${i} += last_${i};
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
${order.placed(items, digits)}
${order.exchange("W", "moved", "entry_{1}", items, work_group, match_width, tile, entry_parts)}
${order.exchange("V", "moved_values", "(V)(begin + mine + {0})" if positions else "values_here[{0}]", items, work_group, match_width, tile, value_parts)}
    }
}
