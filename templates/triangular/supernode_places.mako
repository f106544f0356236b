<%doc>
The place of each unknown of a triangular system whose supernodes are ordered by level: `rows` places to a supernode.

Index space   any; work-items stride over the rows
Inputs        supernodes: of n rows, see triangular/supernodes; places: of each row of a supernode that is solved first, the
              supernode's place
Output        unknowns: the place of each row's unknown
Local memory  none. Of one work-item it is the plain kernel
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const I n, global const int *restrict supernodes, global const int *restrict places, global int *unknowns)
{
    for (ulong item = get_global_id(0); item < (ulong)n; item += get_global_size(0)) {
        const int distance = max(-supernodes[item], 0);
        unknowns[item] = places[item ${"+" if upper else "-"} distance] * ${rows} + distance;
    }
}
