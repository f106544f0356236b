<%doc>
Compact the marked entries of a CSR matrix: move their columns and values together; without `values` write the entries' old
positions in place of values, and behind these positions the number n of all entries.

Index space   an entry to a work-item
Inputs        places: n + 1, the number of kept entries before each entry; entry k is kept if places[k + 1] is not places[k]
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, global const I *restrict places, global const I *restrict indices,
% if values:
    global const V *restrict values,
% endif
    global I *restrict out_indices, global V *restrict out)
{
    const ulong k = get_global_id(0);
    if (k < n) {
        const I place = places[k];
        if (places[k + 1] != place) {
            out_indices[place] = indices[k];
            out[place] = ${"values[k]" if values else "(I)k"};
        }
    }
% if not values:
    if (k == 0)
        out[places[n]] = (I)n;
% endif
}
