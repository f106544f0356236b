<%doc>
Features of a matrix's rows: those of Table I of Hou, Feng and Che, the histogram of row lengths, which they missed, how unlike
neighbouring rows are, and how near columns are to each other.

Index space   any number of work-groups; those of one work-item, for cores, take neighbouring rows, others stride over them
Inputs        indptr and indices, valid; no row has 2^48 entries. Rows are counted by class all, or, where there are more than
              n_counted, blocks of 32 of them, evenly spread. Of n_samples rows, evenly spread, up to 8 entries are looked at
Output        features[FOUND_... * work-groups + work-group], see spmv/features_total. SHORTEST: the shortest row; LONGEST: the
              longest, negative; SQUARES and LARGE_SQUARES: the sum of squares of lengths, in units of 1 and of 2^32; JUMPS: the
              differences between lengths of neighbouring rows. Of the samples ENTRIES, their number; DISTANCE, how far from the
              diagonal they are; PAIRS, how many have another behind them in their row, and GAP, how far away that one's column
              is. From CLASSES on the number of rows of each class: class 0 empty, class c rows of up to 2^(c - 1) entries, more
              than 2^(c - 2)
Local memory  work_group * sizeof(long) and a counter a class
Result        exact
</%doc>
#include "group.cl"
#include "vectors.cl"

#define LOOK(LENGTH) \
    least = min(least, LENGTH); \
    most = max(most, LENGTH); \
% if index == "int32":
    squares += (ulong)LENGTH * (ulong)LENGTH
% else:
    /* A square may take more than 64 bits, and so may their sum: halves are summed apart. */ \
    squares += (ulong)LENGTH * (ulong)LENGTH & 0xffffffff; \
    large_squares += mul_hi((ulong)LENGTH << 16, (ulong)LENGTH << 16)
% endif

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong n_columns, const uint n_counted, const uint n_samples,
    global const I *restrict indptr, global const I *restrict indices, global long *restrict features)
{
    SHARED long box[${work_group}];
    local uint classes[${n_classes}];
    const uint me = get_local_id(0);
    for (uint c = me; c < ${n_classes}; c += ${work_group})
        classes[c] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    // Loops that compare lengths of neighbouring rows end before the last row, which has no neighbour behind it.
    I least = ${"INT_MAX" if index == "int32" else "LONG_MAX"}, most = 0;
    long squares = 0, large_squares = 0, jumps = 0;
    const ulong last = n_rows - 1;
    const ulong size = get_global_size(0);
% if work_group == 1:
    const ulong step = 1, behind = (get_global_id(0) + 1) * last / size;
    ulong row = get_global_id(0) * last / size;
% if index == "int32":
    // The loop takes eight rows at a time, as not all compilers vectorise loops. All rows together have fewer than 2^31 entries.
    // The squares of eight row lengths are two vectors of four, as no function may take or return more than 32 bytes (quirk 2).
    int8 eight_least = INT_MAX, eight_most = 0;
    uint8 eight_jumps = 0;
    ulong4 squares_lo = 0, squares_hi = 0;
    for (; row + 8 <= behind; row += 8) {
        const int8 middle = vload8(0, indptr + row + 1), length = middle - vload8(0, indptr + row);
        const ulong4 wide_lo = convert_ulong4(length.lo), wide_hi = convert_ulong4(length.hi);
        eight_least = min(eight_least, length);
        eight_most = max(eight_most, length);
        eight_jumps += abs(length - (vload8(0, indptr + row + 2) - middle));
        squares_lo += wide_lo * wide_lo;
        squares_hi += wide_hi * wide_hi;
    }
% for i in range(8):
    least = min(least, eight_least.s${i});
    most = max(most, eight_most.s${i});
    jumps += eight_jumps.s${i};
    squares += squares_${'lo' if i < 4 else 'hi'}.s${i % 4};
% endfor
% endif
% else:
    const ulong step = size, behind = last;
    ulong row = get_global_id(0);
    // The loop takes four rows at a time, so that loads of four row lengths are in flight together.
    for (; row + 3 * step < behind; row += 4 * step) {
% for i in range(4):
        global const I *pointer_${i} = indptr + row + ${i} * step;
        const I begin_${i} = pointer_${i}[0], middle_${i} = pointer_${i}[1], end_${i} = pointer_${i}[2];
% endfor
% for i in range(4):
        const I length_${i} = middle_${i} - begin_${i};
        LOOK(length_${i});
        jumps += abs(length_${i} - (end_${i} - middle_${i}));
% endfor
    }
% endif
    for (; row < behind; row += step) {
        const I middle = indptr[row + 1], length = middle - indptr[row];
        LOOK(length);
        jumps += abs(length - (indptr[row + 2] - middle));
    }
    if (get_global_id(0) == 0) {
        const I length = indptr[n_rows] - indptr[last];
        LOOK(length);
    }

    for (uint i = get_global_id(0); i < n_counted; i += get_global_size(0)) {
        const ulong row = n_counted < n_rows ? i / 32 * n_rows / (n_counted / 32) + i % 32 : i;
        const long length = indptr[row + 1] - indptr[row];
        const uint class = length == 0 ? 0 : 65 - clz(length - 1);
% if work_group == 1:
        ++classes[class];
% else:
        atomic_inc(classes + class);
% endif
    }

    long entries = 0, distance = 0, pairs = 0, gap = 0;
    for (ulong sample = get_global_id(0); sample < n_samples; sample += get_global_size(0)) {
        // The sampled row's place in its block of adjacent rows changes from block to block, as row lengths may follow a pattern.
        const ulong block = sample * n_rows / n_samples, place = sample % ((sample + 1) * n_rows / n_samples - block);
        const long diagonal = sample * n_columns / n_samples + place * n_columns / n_rows;
        const ulong begin = indptr[block + place], length = indptr[block + place + 1] - begin;
        const uint looked_at = min(length, (ulong)8);
        for (uint i = 0; i < looked_at; ++i) {
            const ulong k = i * length / looked_at;
            const long column = indices[begin + k];
            distance += abs(column - diagonal);
            if (k + 1 < length) {
                gap += abs(indices[begin + k + 1] - column);
                ++pairs;
            }
        }
        entries += looked_at;
    }

    const size_t group = get_group_id(0), groups = get_num_groups(0);
    const long shortest = group_reduce_min(box, least), longest = group_reduce_min(box, -(long)most);
% for feature in ("squares", "large_squares", "jumps", "entries", "distance", "pairs", "gap"):
    ${feature} = group_reduce_add(box, ${feature});
    if (me == 0)
        features[FOUND_${feature.upper()} * groups + group] = ${feature};
% endfor
    if (me == 0) {
        features[FOUND_SHORTEST * groups + group] = shortest;
        features[FOUND_LONGEST * groups + group] = longest;
    }
    for (uint c = me; c < ${n_classes}; c += ${work_group})
        features[(FOUND_CLASSES + c) * groups + group] = classes[c];
}
