<%doc>
Which entries begin a run of duplicates in their row, an entry with no duplicate being a run of one.
Step "columns": those whose column is not their predecessor's; step "rows": those that begin a row.

Index space   "columns": an entry to a work-item; "rows": a row
Inputs        rows sorted
Output        begins[k]: 1 where entry k begins a run; step "columns" goes first and writes every entry
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
% if step == "columns":
void ${name}(const ulong n, global const I *restrict indices, global uchar *restrict begins)
{
    const ulong k = get_global_id(0);
    if (k < n)
        begins[k] = k == 0 || indices[k] != indices[k - 1];
}
% else:
void ${name}(const ulong n, global const I *restrict indptr, global uchar *restrict begins)
{
    const ulong row = get_global_id(0);
    if (row < n && indptr[row] < indptr[row + 1])
        begins[indptr[row]] = 1;
}
% endif
