<%doc>
Scan of adjacent entries, a work-group to each tile of work_group * items: the second half of a scan${"" if carried else ", or all of one that is no longer than a tile"}.
An entry of target is the sum of all entries of source ${"up to and including it" if inclusive else "before it"}.

Source        reduce-then-scan: Dotsenko et al., "Fast scan algorithms on graphics processors"; Merrill and Grimshaw, "Parallel scan
              for stream architectures"
Index space   a work-group for each tile of the n_target entries of target
Inputs        n entries of source; target has as many or one more. They may be the same array. carries: the sum before each tile
Local memory  work_group * (items + 1) * sizeof(T)
Result        deterministic
</%doc>
#define ITEMS ${items}
#define INCLUSIVE ${int(inclusive)}
#include "tile_scan.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_target, global const SOURCE *source,
% if carried:
    global const T *restrict carries,
% endif
    global T *target)
{
    local T entries[${work_group * items}];
    local T box[${work_group}];
    const uint me = get_local_id(0);
    const ulong begin = (ulong)get_group_id(0) * ${work_group * items} + me;
    // All loads are in flight before the first is used.
    if (begin - me + ${work_group * items} <= n) {
% for i in range(items):
        const SOURCE x_${i} = source[begin + ${i * work_group}];
% endfor
% for i in range(items):
        entries[me + ${i * work_group}] = from_source(x_${i});
% endfor
    } else {
% for i in range(items):
        entries[me + ${i * work_group}] = begin + ${i * work_group} < n ? from_source(source[begin + ${i * work_group}]) : ZERO;
% endfor
    }
    tile_scan(entries, box, ${"carries[get_group_id(0)]" if carried else "ZERO"});
% for i in range(items):
    if (begin + ${i * work_group} < n_target)
        target[begin + ${i * work_group}] = entries[me + ${i * work_group}];
% endfor
}
