<%doc>
The places of the entries of each chunk with each digit, from their counts: an exclusive scan over digits, and over chunks within
a digit, in place. Two launches: first the number of entries of each range of digits; then, with `scans`, the scan, and the first
entry of each digit.

Source        Zagha and Blelloch, "Radix sort for vector multiprocessors"
Index space   a work-item for each of n_ranges ranges of adjacent digits
Inputs        counts[chunk << bits | digit]; sums, from the first step
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_chunks, const uint bits, const ulong n_ranges, global I *restrict counts, global I *restrict sums,
    const ulong n_keys, global I *restrict pointers, const uint scans)
{
    const ulong range = get_global_id(0);
    if (range >= n_ranges)
        return;
    const ulong digits = (ulong)1 << bits, per_range = (digits + n_ranges - 1) / n_ranges;
    const ulong begin = min(range * per_range, digits), end = min(begin + per_range, digits);
    if (!scans) {
        I sum = 0;
        for (ulong chunk = 0; chunk < n_chunks; ++chunk)
            for (ulong d = begin; d < end; ++d)
                sum += counts[chunk << bits | d];
        sums[range] = sum;
        return;
    }
    I before = 0;
    for (ulong earlier = 0; earlier < range; ++earlier)
        before += sums[earlier];
    for (ulong d = begin; d < end; ++d) {
        if (d < n_keys)
            pointers[d] = before;
        for (ulong chunk = 0; chunk < n_chunks; ++chunk) {
            const I count = counts[chunk << bits | d];
            counts[chunk << bits | d] = before;
            before += count;
        }
    }
    if (begin < digits && end == digits && n_keys)
        pointers[n_keys] = before;
}
