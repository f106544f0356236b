<%doc>
Put the entries of each bucket in order, and tell where each column's entries begin, by a counting sort by column. A bucket
has 2 ** low adjacent columns, and few enough entries that they stay in a core's cache. For CPU devices.

Source        a counting sort in each bucket of a radix sort by the highest digit first; own composition
Index space   a work-item for each of n_buckets buckets
Inputs        words: entries of a bucket side by side, the column within the bucket above row_bits bits of the row; bounds: where
              buckets begin, and the end; counts: room for 2 ** low numbers a bucket
Local memory  none
Result        stable, so deterministic
</%doc>
#include "prefetch.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_buckets, const uint low, const uint row_bits, const ulong n_columns, global const I *restrict bounds,
    global const W *restrict words, global const V *restrict values, global I *restrict counts,
    global I *restrict out_indptr, global I *restrict rows, global V *restrict out)
{
    const ulong bucket = get_global_id(0);
    if (bucket >= n_buckets)
        return;
    const ulong begin = bounds[bucket], end = bounds[bucket + 1];
    const ulong first = bucket << low, behind = first + (1ul << low), last = behind < n_columns ? behind : n_columns;
    global I *restrict next = counts + first;
    for (ulong c = 0; c < last - first; ++c)
        next[c] = 0;
    for (ulong k = begin; k < end; ++k)
        ++next[words[k] >> row_bits];
    I place = (I)begin;
    for (ulong c = 0; c < last - first; ++c) {
        const I count = next[c];
        next[c] = place;
        out_indptr[first + c] = place;
        place += count;
    }
    if (last == n_columns)
        out_indptr[n_columns] = (I)end;
    const W row_mask = ((W)1 << row_bits) - 1;
    for (ulong k = begin; k < end; ++k) {
#ifdef HAS_PREFETCH
        const I soon = next[words[k + ${ahead} < end ? k + ${ahead} : k] >> row_bits];
        PREFETCH_TO_WRITE(rows + soon)
        PREFETCH_TO_WRITE(out + soon)
#endif
        const W word = words[k];
        const I to = next[word >> row_bits]++;
        rows[to] = (I)(word & row_mask);
        out[to] = values[k];
    }
}
