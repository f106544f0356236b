<%doc>
Insert new entries into a matrix in canonical format. Phase "new": put new entries into the result, and list them; phase
"entries": move the matrix's own entries to where they stand in the result; phase "rows": write where rows begin.

Source        own
Index space   work-items that stride over places, entries or offsets, or take adjacent ones: `spread` says which
Inputs        phase "new": keys, numbers, values, belongs as of locate.mako; places: n + 1, how many new entries come before
              each place; a place is a new entry if the next number is larger. Phase "entries": n_new new entries, and before
              which entry each belongs, ascending. Phase "rows": the keys of new entries
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
% if phase == "new":
    const ulong n_columns, const long row_step, const long column_step, const long width,
    global const long *restrict keys, global const I *restrict numbers, global const V *restrict values,
    global const I *restrict belongs, global const I *restrict places,
    global I *restrict new_belongs, global long *restrict new_keys, global I *restrict out_indices, global V *restrict out_data)
% elif phase == "entries":
    const I n_new, global const I *restrict new_belongs, global const I *restrict indices, global const V *restrict data,
    global I *restrict out_indices, global V *restrict out_data)
% else:
    const I n_new, const long width, global const long *restrict new_keys, global const I *restrict indptr,
    global I *restrict out_indptr)
% endif
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong i = begin; i < end; i += step) {
% if phase == "new":
        const I before = places[i];
        if (places[i + 1] != before) {
            const long key = keys[i], number = (long)numbers[i], r = number / (long)n_columns, c = number - r * (long)n_columns;
            new_belongs[before] = belongs[i];
            new_keys[before] = key;
            out_indices[belongs[i] + before] = (I)(key - key / width * width);
            out_data[belongs[i] + before] = values[r * row_step + c * column_step];
        }
% else:
        // `low` becomes the number of new entries before entry i, or before row i, of the matrix: a binary search.
        I low = 0, high = n_new;
        while (low < high) {
            const I middle = low + (high - low) / 2;
            if (${"new_belongs[middle] <= (I)i" if phase == "entries" else "new_keys[middle] < (long)i * width"})
                low = middle + 1;
            else
                high = middle;
        }
% if phase == "entries":
        out_indices[i + low] = indices[i];
        out_data[i + low] = data[i];
% else:
        out_indptr[i] = indptr[i] + low;
% endif
% endif
    }
}
