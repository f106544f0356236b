<%doc>
Move the entries of each tile to their buckets (of adjacent columns), in order: each tile is put in order in local memory first,
so that entries of a bucket leave side by side.

An entry is a word, its column within the bucket above its row, and a value. With `last` buckets are columns: rows are written in
place of words, and pointers.

Source        a pass of a radix sort by the highest digit; Satish, Harris and Garland, "Designing efficient sorting algorithms for
              manycore GPUs"; ranks by equal digits among lanes, as in Adinets and Merrill, "Onesweep"
Index space   a work-group for each tile of `tile` adjacent entries, `items` to a work-item
Inputs        starts: of bucket_starts or, with `small`, of bucket_count; rows: of bucket_count; indptr has n_rows + 1 valid
              offsets
Output        bounds: where each of `2 ** bits` buckets begins, and the end; behind these numbers, how many parts of `capacity`
              entries the buckets before each take, at least one each, and the sum; behind them how many runs of parts
              (RUN_OF) the buckets before each take, none for a bucket of up to `alone` parts, and the sum
Local memory  `pool_bytes` bytes for exchanged entries, a bucket for each, an offset for each bucket, a uint for each work-item
Result        stable, so deterministic
</%doc>
<%namespace name="order" file="transpose/bucket_order"/>\
#include "match.cl"
#include "group_scan.cl"
#include "prefetch.cl"
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
    global R *restrict moved${"" if record else ", global V *restrict moved_values"})
{
    local ulong2 pool[${pool_bytes // 16}];
    local uint offset[${digits}];
    local ushort digit_at[${tile}];
    local uint box[${work_group}];
    const uint me = get_local_id(0), lane = me % ${match_width}, team = me / ${match_width};
    // A team of lanes has adjacent entries, and takes as many entries in a step as it has lanes.
    const uint mine = team * ${match_width * items} + lane;
    const uint begin = get_group_id(0) * ${tile}u, n_valid = min(n - begin, ${tile}u), end = begin + n_valid;
    const int behind_mine = (int)n_valid - (int)mine, behind_me = (int)n_valid - (int)me;

    // The columns of the tile's entries are loaded first, as these loads depend on no other load.
% if not positions:
    global const V *values_here = values + ((ulong)begin + mine);
    // Values of entries are prefetched here, and loaded once the entries' places are known, so that they take no registers yet.
    if (me * ${line}u < n_valid) {
        PREFETCH_TO_SHARED(values + ((ulong)begin + me * ${line}u))
    }
% endif
    global const I *columns = indices + ((ulong)begin + mine);
% for i in range(items):
    // Positions behind the tile's last entry are padded with the highest digit (a bucket's number), which comes last in the tile.
    const I column_${i} = behind_mine > ${i * match_width} ? columns[${i * match_width}] : (I)${digits - 1} << shift;
% endfor
    const ${row_type} first_row = (${row_type})rows[get_group_id(0)];
    // No row of the matrix after last_row begins in this tile of entries.
    const ${row_type} last_row = (${row_type})(get_group_id(0) + 1 < get_num_groups(0) ? (long)rows[get_group_id(0) + 1] : n_rows - 1);

    // A work-item computes where the entries of its buckets of columns go, for two buckets at a time.
% if small:
    // Chunks of entries are few: each work-group adds up the chunks' counts by itself, `slices` work-items to a bucket.
    local uint *before = (local uint *)pool, *slice_totals = before + ${work_group};
    {
        uint earlier = 0, total = 0;
        for (uint c = me / ${digits}; c < (me < ${digits * slices} ? get_num_groups(0) : 0); c += ${4 * slices}) {
% for i in range(4):
            const uint count_${i} = c + ${i * slices} < get_num_groups(0) ? starts[((c + ${i * slices}) << ${bits}) + me % ${digits}] : 0;
% endfor
% for i in range(4):
            earlier += c + ${i * slices} < get_group_id(0) ? count_${i} : 0;
            total += count_${i};
% endfor
        }
        before[me] = earlier;
        slice_totals[me] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(pairs):
    const uint digit_of_mine_${i} = 2 * (me * ${pairs} + ${i});
    const bool has_${i} = digit_of_mine_${i} < ${digits};
    uint next_${i} = 0, second_${i} = 0, all_${i} = 0, all_second_${i} = 0;
    for (uint slice = 0; slice < (has_${i} ? ${slices} : 0); ++slice) {
        next_${i} += before[slice * ${digits} + digit_of_mine_${i}];
        second_${i} += before[slice * ${digits} + digit_of_mine_${i} + 1];
        all_${i} += slice_totals[slice * ${digits} + digit_of_mine_${i}];
        all_second_${i} += slice_totals[slice * ${digits} + digit_of_mine_${i} + 1];
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

    // For later launches: how many parts, and runs of parts (counted by one work-group), come before each bucket of columns.
% if skips:
    if (get_group_id(0) == 0)
% endif
    {
% for i in range(pairs):
        const uint parts_${i} = max((all_${i} + ${capacity - 1}) / ${capacity}, 1u);
        const uint parts_second_${i} = max((all_second_${i} + ${capacity - 1}) / ${capacity}, 1u);
        const uint run_${i} = RUN_OF(parts_${i}), run_second_${i} = RUN_OF(parts_second_${i});
        const uint runs_${i} = has_${i} && parts_${i} > ${alone} ? (parts_${i} + run_${i} - 1) / run_${i} : 0;
        const uint runs_second_${i} = has_${i} && parts_second_${i} > ${alone} ? (parts_second_${i} + run_second_${i} - 1) / run_second_${i} : 0;
% endfor
        uint lower = group_scan_add(box, ${" + ".join(f"all_{i} + all_second_{i}" for i in range(pairs))});
        uint parts = group_scan_add(box, ${" + ".join(f"has_{i} * (parts_{i} + parts_second_{i})" for i in range(pairs))});
        uint runs = group_scan_add(box, ${" + ".join(f"runs_{i} + runs_second_{i}" for i in range(pairs))});
% for i in range(pairs):
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

    // An entry's row is the last one that begins at or before it. Marks of rows are padded: no two lanes meet in a memory bank.
    local uint *marks = (local uint *)pool;
    for (uint i = me; i < ${-(-(tile + tile // items) // 4)}; i += ${work_group})
        pool[i] = (ulong2)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (${row_type} row = first_row + 1 + me; row <= last_row; row += ${row_unroll * work_group}) {
% for i in range(row_unroll):
        const ulong begins_${i} = row + ${i * work_group} <= last_row ? (ulong)indptr[row + ${i * work_group}] : end;
% endfor
% for i in range(row_unroll):
        if (begins_${i} < end) {
            const uint place = (uint)begins_${i} - begin;
            atomic_max(marks + ${padded("place")}, (uint)(row + ${i * work_group} - first_row));
        }
% endfor
    }
    {
        uint lower = group_scan_add(box, ${" + ".join(f"all_{i} + all_second_{i}" for i in range(pairs))});
% for i in range(pairs):
        next_${i} += lower;
        second_${i} += lower + all_${i};
        lower += all_${i} + all_second_${i};
% endfor
    }
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
    const ${row_type} row_${i} = first_row + marks[${f"mine + mine / {items} + {i * match_width * (items + 1) // items}" if match_width % items == 0 else padded(f"(mine + {i * match_width})")}];
    const uint digit_${i} = (uint)(column_${i} >> shift);
% if last:
    W entry_${i} = (W)row_${i};
% else:
    W entry_${i} = (W)(column_${i} & (((I)1 << shift) - 1)) << row_bits | (W)row_${i};
% endif
    ${"computed_now_64" if word == "ulong" else "computed_now"}(entry_${i})
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);

${order.ranks(items, digits, teams, pairs, work_group)}
% for i in range(pairs):
    if (has_${i}) {
        offset[digit_of_mine_${i}] = next_${i} - start_${i};
        offset[digit_of_mine_${i} + 1] = second_${i} - start_${i} - first_${i};
    }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
${order.placed(items, digits)}
<% value = "(V)(begin + mine + {0})" if positions else "values_here[{0}]" %>\
% if record:
${order.exchange("R", "moved", f"RECORD(entry_{{1}}, {value})", items, work_group, match_width, tile, record_parts)}
% else:
${order.exchange("W", "moved", "entry_{1}", items, work_group, match_width, tile, record_parts)}
${order.exchange("V", "moved_values", value, items, work_group, match_width, tile, value_parts)}
% endif
}
