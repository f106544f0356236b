<%doc>
Which entries of a matrix a mask lets through: marks[k] is 1 if the mask has an entry at the place of entry k, or, if it is
complemented, if it has none.

Source        own
Index space   work-items that stride over the entries, or take adjacent ones: `spread` says which
Inputs        rows and columns of the entries; the mask's structure in canonical format; there: the mark of entries at places of
              the mask, 1 or 0
Local memory  none
Result        exact
</%doc>
#include "first_from.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const ulong stride, const ulong step, const ulong span, const uint there,
    global const I *restrict rows, global const I *restrict columns,
    global const I *restrict m_indptr, global const I *restrict m_indices, global uchar *restrict marks)
{
    const ulong begin = get_global_id(0) * stride, end = min(n, begin + span);
    for (ulong k = begin; k < end; k += step) {
        const I row = rows[k], column = columns[k], last = m_indptr[row + 1];
        const I at = first_from(m_indices, m_indptr[row], last, column);
        marks[k] = (at < last && m_indices[at] == column) == (there != 0);
    }
}
