<%doc>
The level of each row of a triangular system: how many rows have to be solved before it, one after another, at least.
Entries on the other side of the diagonal are passed over; with `with_supernodes`, those within a supernode too, whose rows have
one level.

Source        Anderson and Saad, "Solving sparse triangular linear systems on parallel computers"
Index space   one work-group, which takes as many rows at a time as it has work-items, in the order in which they can be solved
Inputs        indptr, indices: of n rows; the matrix is lower triangular or, if `upper`, upper triangular. supernodes, with
              `with_supernodes`: see triangular/supernodes
Output        levels: of each row, from 0 on; state: HIGHEST: the highest level; 0 before
Local memory  (work_group + 1) * sizeof(int); of one work-item, which is the plain kernel, none
Result        exact
</%doc>
#define HIGHEST 0

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const I n, global const I *restrict indptr, global const I *restrict indices,
% if with_supernodes:
    global const int *restrict supernodes,
% endif
    global int *levels, global int *state)
{
% if work_group > 1:
    local int level[${work_group}];
    local int changed;
% endif
    const int me = get_local_id(0);
    int highest = 0;
    for (I chunk = 0; chunk < n; chunk += ${work_group}) {
        // `place` and `before` are the places of a row and a column in the order in which a triangular system is solved.
        const I place = chunk + me, row = ${"n - 1 - place" if upper else "place"};
        const I begin = place < n ? indptr[row] : 0, end = place < n ? indptr[row + 1] : 0;
% if with_supernodes:
        // The place of the supernode's first row: entries from there on are passed over.
        const I bound = place < n ? place - max(-supernodes[row], 0) : 0;
% else:
        const I bound = place;
% endif
        int own_level = 0;
        for (I k = begin; k < end; ++k) {
            const I column = indices[k], before = ${"n - 1 - column" if upper else "column"};
            if (before < min(chunk, bound))
                own_level = max(own_level, levels[column] + 1);
        }
% if work_group > 1:
        level[me] = own_level;
        // Levels of rows rise by dependencies on rows of the same chunk, until no level changes.
        int goes_on = 1;
        while (goes_on) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (me == 0)
                changed = 0;
            int best = own_level;
            for (I k = begin; k < end; ++k) {
                const I before = ${"n - 1 - indices[k]" if upper else "indices[k]"};
                if (before >= chunk && before < bound)
                    best = max(best, level[before - chunk] + 1);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (best != own_level) {
                own_level = best;
                level[me] = own_level;
                changed = 1;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            goes_on = changed;
        }
% endif
        if (place < n) {
            levels[row] = own_level;
            highest = max(highest, own_level);
        }
% if work_group > 1:
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
% endif
    }
    atomic_max(state + HIGHEST, highest);
}
