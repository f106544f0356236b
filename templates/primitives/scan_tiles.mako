<%doc>
Scan of adjacent entries, a work-group to each tile of `work_group * items`: the last part of a scan (`carried`), or all of a scan
that is no longer than a tile.

An entry of target is the sum of the entries of source before it, `inclusive`: up to and including it; `by_key`: of entries with
its key. With `runs` an entry is 1 where a run of equal keys begins, else 0, so that the sum numbers the runs, whose keys and
first positions are written.

Source        reduce-then-scan: Dotsenko et al., "Fast scan algorithms on graphics processors"; Merrill and Grimshaw, "Parallel
              scan for stream architectures"
Index space   a work-group for each tile of the n_target entries of target
Inputs        n entries of source; target has as many or one more. They may be the same array. carries: the sum before each tile;
              `adds`: behind a number that is not read, the sum of each of few tiles. `by_key`: keys that never decrease
Local memory  work_group * (items + 1) * sizeof(T); `by_key`: and a uint for each work-item and a byte for each entry
Result        deterministic
</%doc>
#define ITEMS ${items}
#define INCLUSIVE ${int(inclusive)}
#define SEGMENTED ${int(by_key)}
#include "tile_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_target, global const SOURCE *source,
% if by_key:
    global const ulong *restrict keys,
% endif
% if carried:
    global const T *restrict carries,
% endif
    ${"global SOURCE *restrict unique, global T *restrict starts" if runs else "global TARGET *target"})
{
    local T entries[${work_group * items}];
    local T box[${work_group}];
% if by_key:
    local uchar heads[${work_group * items}];
    local uint head_box[${work_group}];
% endif
    const uint me = get_local_id(0);
% if adds:
    local T total;
    {
        T mine = ZERO;
        for (ulong i = me + 1; i <= get_group_id(0); i += ${work_group})
            mine = ADD(mine, carries[i]);
        const T before = group_before(box, mine);
        if (me == ${work_group - 1})
            total = ADD(before, mine);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% endif
    const ulong begin = (ulong)get_group_id(0) * ${work_group * items} + me;
    // All loads of a work-item's entries are in flight before the first loaded entry is used.
    if (begin - me + ${work_group * items} <= n) {
% for i in range(items):
        const T x_${i} = LOAD(source, begin + ${i * work_group});
% endfor
% for i in range(items):
        entries[me + ${i * work_group}] = x_${i};
% endfor
    } else {
% for i in range(items):
        entries[me + ${i * work_group}] = begin + ${i * work_group} < n ? LOAD(source, begin + ${i * work_group}) : ZERO;
% endfor
    }
% if by_key:
% for i in range(items):
    heads[me + ${i * work_group}] =
        begin + ${i * work_group} < n && begin + ${i * work_group} > 0 && keys[begin + ${i * work_group}] != keys[begin + ${i * work_group - 1}];
% endfor
% endif
    const T carry = ${"total" if adds else "carries[get_group_id(0)]" if carried else "ZERO"};
    tile_scan(entries, ${"heads, box, head_box" if by_key else "0, box, 0"}, carry);
% for i in range(items):
    if (begin + ${i * work_group} < n_target) {
% if runs:
        const T before = me + ${i * work_group} > 0 ? entries[me + ${i * work_group - 1}] : carry;
        if (entries[me + ${i * work_group}] != before) {
            unique[before] = source[begin + ${i * work_group}];
            starts[before] = (T)(begin + ${i * work_group});
        }
        if (begin + ${i * work_group} == n - 1)
            starts[entries[me + ${i * work_group}]] = (T)n;
% else:
        target[begin + ${i * work_group}] = (TARGET)(entries[me + ${i * work_group}]);
% endif
    }
% endfor
}
