<%doc>
Select columns of a matrix. Phase "count": how many entries of the result each entry makes; phase "fill": these entries, once it
is known where they go. Columns are `mapped`, each to a column of the result or -1, `listed`, each with the columns of the result
that it becomes, or every step-th from a first column.

Source        own
Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        `listed`: targets[offsets[c]] up to, not including, targets[offsets[c + 1]] are the columns of the result that
              column c becomes. Else column first + c * column_step becomes column c of n_taken; column_step may be negative.
              "fill": places, the exclusive scan of counts, with the total behind it
Output        "count": counts; "fill": the entries of the result, in the order of those that they are made of
Local memory  none
Result        exact
</%doc>
<% fill = phase == "fill" %>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span,
% if mapped:
    global const int *restrict mapped,
% elif listed:
    global const I *restrict offsets,
% else:
    const I first, const I column_step${"" if fill else ", const I n_taken"},
% endif
    global const I *restrict indices,
% if fill:
% if listed:
    global const I *restrict targets,
% endif
    global const V *restrict values, global const ${place} *restrict places,
    global I *restrict out_indices, global V *restrict out_values)
% else:
    global ${place if listed else "uchar"} *restrict counts)
% endif
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong k = begin; k < end; k += step) {
% if fill:
        const ulong place = (ulong)places[k], n_made = (ulong)places[k + 1] - place;
        if (n_made) {
            const I column = indices[k];
            const V value = values[k];
% if mapped:
            out_indices[place] = (I)mapped[column];
            out_values[place] = value;
% elif listed:
            const I of_column = offsets[column];
            for (ulong i = 0; i < n_made; ++i) {
                out_indices[place + i] = targets[of_column + i];
                out_values[place + i] = value;
            }
% else:
            out_indices[place] = (column - first) / column_step;
            out_values[place] = value;
% endif
        }
% elif mapped:
        counts[k] = mapped[indices[k]] >= 0;
% elif listed:
        counts[k] = (${place})(offsets[indices[k] + 1] - offsets[indices[k]]);
% else:
        const I distance = indices[k] - first, result_column = column_step == 1 ? distance : distance / column_step;
        counts[k] = result_column >= 0 && result_column < n_taken && result_column * column_step == distance;
% endif
    }
}
