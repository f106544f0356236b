<%doc>
Assign values to the entries that a sparse matrix has at given places (row, column); of a place that is given several times, the
last value.

Source        own
Index space   a work-item for each of n places
Inputs        keys: of places (see keys.mako), ascending, equal ones in the order in which they are given; numbers: which place
              each is; the value of place i is (i / n_columns, i % n_columns) of values, which steps tell; the structure is
              canonical
Output        data: values of places that have an entry; is_new: 1 for the last of equal places if the place has no entry, else
              0; belongs: before which entry each place belongs
Local memory  none
Result        deterministic
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong n_columns, const long row_step, const long column_step, const long width,
    global const long *restrict keys, global const I *restrict numbers, global const V *restrict values,
    global const I *restrict indptr, global const I *restrict indices,
    global V *restrict data, global uchar *restrict is_new, global I *restrict belongs)
{
    const ulong p = get_global_id(0);
    if (p >= n)
        return;
    const long key = keys[p], row = key / width;
    const I column = (I)(key - row * width);
    const bool is_last = p + 1 == n || keys[p + 1] != key;
    const I end = indptr[row + 1];
    I k = indptr[row], after = end;
    while (k < after) {
        const I middle = k + (after - k) / 2;
        if (indices[middle] < column)
            k = middle + 1;
        else
            after = middle;
    }
    const bool is_stored = k < end && indices[k] == column;
    if (is_stored && is_last) {
        const ulong i = (ulong)numbers[p], r = i < n_columns ? 0 : i / n_columns, c = i - r * n_columns;
        data[k] = values[(long)r * row_step + (long)c * column_step];
    }
    is_new[p] = is_last && !is_stored;
    belongs[p] = k;
}
