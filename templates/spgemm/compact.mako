<%doc>
Compaction of C: rows that were made in the room of all their products are moved together.

Source        own
Index space   a work-group to `tile` entries of C
Inputs        begins: the beginning of each row's room; indptr: C's row pointers. Rows and products are less than 2^31
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_rows, const uint nnz, global const C_INDEX *restrict begins,
    global const C_INDEX *restrict indices, global const T *restrict data,
    global const C_INDEX *restrict indptr, global C_INDEX *restrict c_indices, global T *restrict c_data)
{
    const uint begin = get_group_id(0) * ${tile}, end = min(begin + ${tile}, nnz);
    // Two binary searches at once find the row of C of a tile's first entry and the row of C of its last entry.
    uint first = 0, last = 0;
    for (uint step = n_rows > 1 ? 1u << (31 - clz(n_rows - 1)) : 0; step; step /= 2) {
        if (first + step < n_rows && (uint)indptr[first + step] <= begin)
            first += step;
        if (last + step < n_rows && (uint)indptr[last + step] < end)
            last += step;
    }
    const uint stride = last > first ? 1u << (31 - clz(last - first)) : 0;
    // A work-item moves several entries of C at a time, so that no load waits for another.
    for (uint entry = begin + get_local_id(0); entry < end; entry += ${items * work_group}) {
        uint ${", ".join(f"row_{u} = first" for u in range(items))};
        for (uint step = stride; step; step /= 2) {
% for u in range(items):
            if (row_${u} + step <= last && (uint)indptr[row_${u} + step] <= entry + ${u * work_group})
                row_${u} += step;
% endfor
        }
% for u in range(items):
        const uint at_${u} = entry + ${u * work_group};
        C_INDEX column_${u} = 0;
        T value_${u} = ZERO;
        if (at_${u} < end) {
            const uint from = (uint)begins[row_${u}] + (at_${u} - (uint)indptr[row_${u}]);
            column_${u} = indices[from];
            value_${u} = data[from];
        }
% endfor
% for u in range(items):
        if (at_${u} < end) {
            c_indices[at_${u}] = column_${u};
            c_data[at_${u}] = value_${u};
        }
% endfor
    }
}
