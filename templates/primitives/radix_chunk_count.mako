<%doc>
The number of entries of each chunk with each digit: counts[chunk << bits | digit]. The first third of a pass of a radix sort on
CPU devices.

Source        Zagha and Blelloch, "Radix sort for vector multiprocessors"
Index space   a work-item for each of n_chunks chunks of per_chunk adjacent entries
Inputs        words: keys in any order; the digit is the number that bits bits of a word make up, from bit shift on
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong per_chunk, const ulong n_chunks, const uint shift, const uint bits, const ulong flip,
    global const ${word} *restrict words, global I *restrict counts)
{
    const ulong chunk = get_global_id(0);
    if (chunk >= n_chunks)
        return;
    const ${word} mask = (${word})(((ulong)1 << bits) - 1), flipped = (${word})flip;
    global I *chunk_counts = counts + (chunk << bits);
    for (ulong d = 0; d <= mask; ++d)
        chunk_counts[d] = 0;
    const ulong end = min((chunk + 1) * per_chunk, n);
    for (ulong k = chunk * per_chunk; k < end; ++k)
        chunk_counts[((words[k] ^ flipped) >> shift) & mask] += 1;
}
