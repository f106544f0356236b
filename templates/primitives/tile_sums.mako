<%doc>
The sum of each tile of `tile` adjacent entries: the first part of a scan. Entries are values; with `runs` an entry is 1 where a
run of equal keys begins, else 0. `by_key`: the sum of the entries with the last key of the tile.

Source        reduce-then-scan: Dotsenko et al., "Fast scan algorithms on graphics processors"; Merrill and Grimshaw, "Parallel
              scan for stream architectures"
Index space   a work-group for each tile
Inputs        n entries; sums are made in T, whatever the type of the entries is; `by_key`: keys that never decrease
Output        carries[tile + 1]; carries[0]: ZERO; `by_key`: last_keys[tile + 1], the last key
Local memory  work_group * sizeof(T)
Result        deterministic
</%doc>
#define SEGMENTED 0
#include "tile_scan.cl"
<%
    guard = "if (keys[begin + i] == last) " if by_key else ""
%>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, global const SOURCE *restrict source,
% if by_key:
    global const ulong *restrict keys, global ulong *restrict last_keys,
% endif
    global T *restrict carries)
{
    local T box[${work_group}];
    const uint me = get_local_id(0);
    const ulong tile = get_group_id(0), begin = tile * ${tile};
    const uint n_valid = (uint)min(n - begin, (ulong)${tile});
% if by_key:
    const ulong last = keys[begin + n_valid - 1];
% endif
    T sum = ZERO;
    if (n_valid == ${tile}) {
        for (uint i = me; i < ${tile}; i += ${work_group})
            ${guard}sum = ADD(sum, LOAD(source, begin + i));
    } else {
        for (uint i = me; i < n_valid; i += ${work_group})
            ${guard}sum = ADD(sum, LOAD(source, begin + i));
    }
    const T before = group_before(box, sum);
    if (me == ${work_group - 1})
        carries[tile + 1] = ADD(before, sum);
    if (tile == 0 && me == 0)
        carries[0] = ZERO;
% if by_key:
    if (me == 0) {
        last_keys[tile + 1] = last;
        if (tile == 0)
            last_keys[0] = keys[0];
    }
% endif
}
