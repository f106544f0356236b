<%doc>
Compaction of C: rows that were made chunk by chunk, a chunk in the room of all its products, are moved together; see
dense_chunked.mako.

Source        own
Index space   a work-item to each of n_chunks chunks
Inputs        chunk_row[c]: the first row of chunk c, chunk_row[n_chunks] all rows; begins: the beginning of each row's room;
              indptr: C's row pointers
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const uint n_chunks, global const long *restrict chunk_row, global const C_INDEX *restrict begins,
    global const C_INDEX *restrict indices, global const T *restrict data,
    global const C_INDEX *restrict indptr, global C_INDEX *restrict c_indices, global T *restrict c_data)
{
    const ulong chunk = get_global_id(0);
    if (chunk >= n_chunks)
        return;
    const C_INDEX from = begins[chunk_row[chunk]], to = indptr[chunk_row[chunk]], n = indptr[chunk_row[chunk + 1]] - to;
    for (C_INDEX j = 0; j < n; ++j)
        c_indices[to + j] = indices[from + j];
    for (C_INDEX j = 0; j < n; ++j)
        c_data[to + j] = data[from + j];
}
