<%doc>
Move the entries of each chunk to the places of their digit, in order: the last third of a pass of a radix sort on CPU devices.

An entry is a word and, if there are values, a value. A pass after the first may also write the first entry of each key, a key
being made of this digit and those of earlier passes; the first entries of the lower keys, of the pass before, are an input.

Source        Zagha and Blelloch, "Radix sort for vector multiprocessors"
Index space   a work-item for each of n_chunks chunks of per_chunk adjacent entries
Inputs        cursors: radix_chunk_starts' scan, used up. Entries come by `source`. "rows": as keys; the item of an entry
              is its row, and indptr has n_rows + 1 valid offsets. "items": as keys and items.
              "positions": as keys; the item of an entry is its position. "words": as words. With `highest` the digit is
              the key's highest, and words keep the bits below it. With `ahead` the kernel prefetches the lines that it writes
Local memory  none
Result        stable, so deterministic
</%doc>
<%
    from_keys = source != "words"
    if from_keys and last:
        out_word = f"({result})item"
    elif highest:
        out_word = f"({result})(word & lower) << item_bits | ({result})item"
    elif from_keys:
        out_word = f"({result})(word >> bits) << item_bits | ({result})item"
    elif last:
        out_word = f"({result})(word & key_mask)"
    else:
        out_word = "word"
%>
#include "prefetch.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong per_chunk, const ulong n_chunks, const uint shift, const uint bits, const ulong flip,
    global const ${word} *restrict words, global I *restrict cursors,
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
    const long n_lower, global const I *restrict lower, const long n_keys, global I *restrict pointers,
% endif
% if last and not from_keys:
    const ulong key_mask,
% endif
    global ${result} *restrict sorted${"," if value else ")"}
% if value:
    global V *restrict sorted_values)
% endif
{
    const ulong chunk = get_global_id(0);
    if (chunk >= n_chunks)
        return;
    const ulong begin = chunk * per_chunk, end = min(begin + per_chunk, n);
    const ${word} mask = (${word})(((ulong)1 << bits) - 1), flipped = (${word})flip;
    global I *cursor = cursors + (chunk << bits);
% if highest:
    const ${word} lower = (${word})(((ulong)1 << shift) - 1);
% endif
% if source == "rows":
    // Bisection for the last row that begins at or before the chunk of entries.
    long row = 0, after = n_rows;
    while (row + 1 < after) {
        const long middle = (row + after) / 2;
        if (indptr[middle] <= (I)begin)
            row = middle;
        else
            after = middle;
    }
% endif
% if pointers:
    long low = 0, high = n_lower;
    while (low < high) {
        const long middle = (low + high) / 2;
        if (lower[middle] < (I)begin)
            low = middle + 1;
        else
            high = middle;
    }
    ulong low_begin = low < n_lower ? lower[low] : n + 1;
% endif
% if source == "rows":
## Two nested loops, over rows and over a row's entries, replace one over entries that steps from row to row (quirk 22).
    for (ulong k = begin; k < end; ++row) {
        const I item = (I)row;
        const ulong next = indptr[row + 1], row_end = next < end ? next : end;
        for (; k < row_end; ++k) {
${move(" " * 12)}\
        }
    }
% else:
    for (ulong k = begin; k < end; ++k) {
% if pointers:
        while (low_begin == k) {
            for (long d = 0; d <= (long)mask && d * n_lower + low < n_keys; ++d)
                pointers[d * n_lower + low] = cursor[d];
            ++low;
            low_begin = low < n_lower ? lower[low] : n + 1;
        }
% endif
% if source == "items":
        const I item = items[k];
% elif source == "positions":
        const I item = (I)k;
% endif
${move(" " * 8)}\
    }
% endif
% if pointers:
    if (chunk + 1 == n_chunks) {
        for (; low < n_lower; ++low)
            for (long d = 0; d <= (long)mask && d * n_lower + low < n_keys; ++d)
                pointers[d * n_lower + low] = cursor[d];
        pointers[n_keys] = (I)n;
    }
% endif
}
<%def name="move(indent)">\
% if ahead:
#ifdef HAS_PREFETCH
${indent}const I soon = cursor[((words[k + ${ahead} < end ? k + ${ahead} : k] ^ flipped) >> shift) & mask];
${indent}PREFETCH_TO_WRITE(sorted + soon)
% if value:
${indent}PREFETCH_TO_WRITE(sorted_values + soon)
% endif
#endif
% endif
${indent}const ${word} word = words[k];
${indent}const I to = cursor[((word ^ flipped) >> shift) & mask]++;
${indent}sorted[to] = ${out_word};
% if value:
${indent}sorted_values[to] = ${"values[k]" if value == "loaded" else "(V)k"};
% endif
</%def>
