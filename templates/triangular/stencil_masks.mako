<%doc>
Which points of a stencil each row of a triangular matrix has, and whether all of its entries are points of the stencil: a row is
a point of a grid, and an entry beside the diagonal one of the points around it.

Index space   a work-item to a row, striding
Inputs        indptr, indices: of n rows, each of which ends (upper: begins) with its diagonal entry; nx, plane: points of a line
              and of a plane. `stencil`: offsets in x, y and z, in the order of columns
Output        masks: of each row; bit i: it has the stencil's i-th point. state: OTHERS: 1 if a row has another entry, or entries
              in another order; 0 before
Local memory  none. Of one work-item it is the plain kernel
Result        exact; without meaning if OTHERS is 1
</%doc>
#define OTHERS 0

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const int n, const int nx, const int plane, global const I *restrict indptr, global const I *restrict indices,
    global uint *masks, global int *state)
{
    for (uint item = get_global_id(0); item < (uint)n; item += get_global_size(0)) {
        const int row = (int)item, place = ${"n - 1 - row" if upper else "row"};
        const int z = place / plane, y = (place - z * plane) / nx, x = place - z * plane - y * nx;
        uint mask = 0;
        bool fits = true;
        for (I k = indptr[row]${" + 1" if upper else ""}; k < indptr[row + 1]${"" if upper else " - 1"}; ++k) {
            const I distance = ${"indices[k] - row" if upper else "row - indices[k]"};
            uint bit = 0;
% for i, (dx, dy, dz) in enumerate(stencil):
            if (distance == (I)${-dz} * plane + ${-dy} * nx + ${-dx} && ${" && ".join(
        [f"x + {dx} >= 0" if dx < 0 else f"x + {dx} < nx" if dx > 0 else ""] * bool(dx)
        + [f"y + {dy} >= 0" if dy < 0 else f"(y + {dy}) * nx < plane" if dy > 0 else ""] * bool(dy) + [f"z >= {-dz}"])})
                bit = ${1 << i}u;
% endfor
            // Columns rise from one entry to the next, and so do bits.
            fits = fits && bit > mask;
            mask |= bit;
        }
        masks[row] = mask;
        if (!fits)
            atomic_or(state + OTHERS, 1);
    }
}
