<%doc>
Scan of adjacent entries in a few long chunks, for devices whose work-items are the iterations of a core's loop. Step "${step}":
${"the sum of each chunk but the last" if step == "sums" else "the scan of each chunk, from the sum of those before it"}.

Source        own; reduce-then-scan
Index space   a work-item for each of n_chunks chunks of ceil(n_target / n_chunks) entries
Inputs        n entries of source; target has n_target, as many or one more. They may be the same array. An entry of target is the
              sum of all entries of source before it, and of itself where the scan is inclusive
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_target, const ulong n_chunks, global const SOURCE *source,
    global T *restrict sums${", global T *target)" if step == "scan" else ")"}
{
    const ulong chunk = get_global_id(0);
    if (chunk >= n_chunks${" - 1" if step == "sums" else ""})
        return;
    const ulong per_chunk = (n_target + n_chunks - 1) / n_chunks;
    const ulong begin = min(chunk * per_chunk, n), end = min(begin + per_chunk, n);
    T sum = ZERO;
% if step == "sums":
    for (ulong i = begin; i < end; ++i)
        sum = ADD(sum, from_source(source[i]));
    sums[chunk] = sum;
% else:
    for (ulong earlier = 0; earlier < chunk; ++earlier)
        sum = ADD(sum, sums[earlier]);
    for (ulong i = begin; i < end; ++i) {
        const T next = ADD(sum, from_source(source[i]));
        target[i] = ${"next" if inclusive else "sum"};
        sum = next;
    }
    // One entry more than there are in source: the sum of all.
    if (chunk == n_chunks - 1 && n_target > n)
        target[n] = sum;
% endif
}
