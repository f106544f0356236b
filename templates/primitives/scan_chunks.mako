<%doc>
Scan of adjacent entries in a few long chunks, for devices whose work-items are the iterations of a core's loop. Step "sums": the
sum of each chunk; step "scan": the scan of each chunk, from the sum of the chunks before it.

An entry of target is the sum of the entries of source before it, `inclusive`: up to and including it. With `runs` an entry is 1
where a run of equal keys begins, else 0, so that the sum numbers the runs, whose keys and first positions are written.

Source        own; reduce-then-scan
Index space   a work-item for each of n_chunks chunks of ceil(n_target / n_chunks) entries
Inputs        n entries of source; target has n_target, as many or one more. They may be the same array
Local memory  none
Result        deterministic
</%doc>
#include "range_sum.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_target, const ulong n_chunks, global const SOURCE *source, global T *restrict sums
% if step == "scan":
    , ${"global SOURCE *restrict unique, global T *restrict starts" if runs else "global TARGET *target"}
% endif
)
{
    const ulong chunk = get_global_id(0);
    if (chunk >= n_chunks)
        return;
    const ulong per_chunk = (n_target + n_chunks - 1) / n_chunks;
    const ulong begin = min(chunk * per_chunk, n), end = min(begin + per_chunk, n);
% if step == "sums":
    sums[chunk] = range_sum(source, begin, end);
% else:
    T sum = ZERO;
    for (ulong earlier = 0; earlier < chunk; ++earlier)
        sum = ADD(sum, sums[earlier]);
    for (ulong i = begin; i < end; ++i) {
        const T next = ADD(sum, LOAD(source, i));
% if runs:
        if (next != sum) {
            unique[sum] = source[i];
            starts[sum] = (T)i;
        }
% else:
        target[i] = (TARGET)(${"next" if inclusive else "sum"});
% endif
        sum = next;
    }
% if runs:
    if (chunk == n_chunks - 1)
        starts[sum] = (T)n;
% else:
    // If the array target has one entry more than the array source, the last is the sum of all entries.
    if (chunk == n_chunks - 1 && n_target > n)
        target[n] = (TARGET)(sum);
% endif
% endif
}
