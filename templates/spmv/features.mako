<%doc>
Features of the row lengths of a matrix (Hou, Feng and Che, Table I) and their histogram, which the paper asks for.

Index space   any number of work-groups; each strides over the rows
Inputs        indptr, valid; no row has 2^48 entries
Output        found[(4 + ${n_classes}) * group + i], to be put together over the groups: 0 the shortest row, 1 the longest,
              2 and 3 the sum of squares, in units of 1 and of 2^32; from 4 on the number of rows of each class: class 0 empty,
              class c rows of up to 2^(c - 1) entries and more than 2^(c - 2)
Local memory  work_group * sizeof(long) and a counter a class
Result        exact
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const I n_rows, global const I *restrict indptr, global long *restrict found)
{
    local long box[${work_group}];
    local uint classes[${n_classes}];
    const uint me = get_local_id(0);
    for (uint c = me; c < ${n_classes}; c += ${work_group})
        classes[c] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    long shortest = LONG_MAX, longest = 0, squares = 0, large_squares = 0;
    for (ulong row = get_global_id(0); row < n_rows; row += get_global_size(0)) {
        const long length = indptr[row + 1] - indptr[row];
        shortest = min(shortest, length);
        longest = max(longest, length);
        // A square may take more than 64 bits, and so may their sum: halves are summed apart.
        squares += (ulong)length * (ulong)length & 0xffffffff;
        large_squares += mul_hi((ulong)length << 16, (ulong)length << 16);
        atomic_inc(classes + (length == 0 ? 0 : 65 - clz(length - 1)));
    }
    shortest = group_reduce_min(box, shortest);
    longest = -group_reduce_min(box, -longest);
    squares = group_reduce_add(box, squares);
    large_squares = group_reduce_add(box, large_squares);
    global long *out = found + (4 + ${n_classes}) * get_group_id(0);
    for (uint c = me; c < ${n_classes}; c += ${work_group})
        out[4 + c] = classes[c];
    if (me == 0) {
        out[0] = shortest;
        out[1] = longest;
        out[2] = squares;
        out[3] = large_squares;
    }
}
