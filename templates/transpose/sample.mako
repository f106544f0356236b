<%doc>
Whether the entries of a sample have mirror images: a cheap test before gather.mako, which searches the images of all entries.

The sample has an entry of each of `samples` rows, one at random out of each of as many equal ranges of rows; in turn the first,
the second, ... of its row.

Source        own
Index space   one work-group
Inputs        a square matrix; without sorted rows and unique columns mirror images may be missed
Output        report[0]: 1 to gather: no mirror image is missing, and at least at_first of 1024 are found at the first guess, a
              stencil's position; report[1]: 0, set by gather; report[2]: sampled entries; report[3]: entries without mirror
              image; report[4]: mirror images at the first guess
Local memory  three counters
Result        exact
</%doc>
#include "mirror.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const I n_rows, const uint at_first, global const I *restrict indptr, global const I *restrict indices,
    global uint *restrict report)
{
    local uint counts[3];
    const uint me = get_local_id(0);
    for (uint i = me; i < 3; i += ${work_group})
        counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong n_samples = min((ulong)${samples}, (ulong)n_rows);
    for (ulong sample = me; sample < n_samples; sample += ${work_group}) {
        const ulong range = (ulong)n_rows / n_samples;
        const I row = (I)(sample * range + sample * 2654435761ul % range);
        const I begin = indptr[row], length = indptr[row + 1] - begin;
        if (length == 0)
            continue;
        const I before = (I)(sample % (ulong)length), column = indices[begin + before];
        const I of_column = indptr[column], end = indptr[column + 1], guess = mirror_guess(of_column, end, before);
        const I place = mirror_search(indices, of_column, end, guess, row);
        atomic_inc(counts);
        if (place < 0)
            atomic_inc(counts + 1);
        else if (place == guess)
            atomic_inc(counts + 2);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        report[0] = counts[0] > 0 && counts[1] == 0 && counts[2] * 1024 >= counts[0] * at_first;
        report[1] = 0;
        report[2] = counts[0];
        report[3] = counts[1];
        report[4] = counts[2];
    }
}
