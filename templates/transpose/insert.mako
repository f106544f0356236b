<%doc>
Put the entries of a matrix, which their positions stand for, into the rows of its transposed, in no particular order within a row.

Source        the second step of SpTRANS: Ji et al., "Segmented merge", Section 4.2; ranks in place of its atomics
Index space   any number of work-items, which stride over the entries
Inputs        ranks: of count.mako; transposed_ptr: where the rows of the transposed begin
Local memory  none
Result        as deterministic as the ranks
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, global const I *restrict indices, global const uint *restrict ranks, global const I *restrict transposed_ptr,
    global I *restrict positions)
{
    for (ulong k = get_global_id(0); k < n; k += get_global_size(0))
        positions[transposed_ptr[indices[k]] + (I)ranks[k]] = (I)k;
}
