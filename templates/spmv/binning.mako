<%doc>
Group adjacent rows into virtual rows of granularity U, and virtual rows into bins by workload: bin floor(entries / U), and the
last bin for longer ones. Step "histogram": how many virtual rows each bin holds. Step "count": how many virtual rows of each
list each work-item has. Step "place": write the virtual rows' numbers to the lists, in row order.

Source        Hou, Feng and Che, Algorithm 2; hybrid binning after Section III-B
Index space   histogram: any number of work-groups, which stride over virtual rows. count, place: n_chunks work-items (rounded
              up), each with a chunk of adjacent virtual rows
Inputs        indptr, valid. Where threshold is not negative, a virtual row counts only if the block of adjacent rows that it lies
              in has threshold entries a row or more (side 1), or fewer (side 0). list_of_bin: the list for each bin, -1 for none
Local memory  histogram: a counter a bin
Result        exact; lists in row order, so deterministic
</%doc>
int bin_of(
    const long virtual_row, const long n_rows, const long granularity, const long block, const long threshold, const int side,
    global const I *restrict indptr)
{
    const long first = virtual_row * granularity;
    const long workload = indptr[min(first + granularity, n_rows)] - indptr[first];
    if (threshold >= 0) {
        const long start = first / block * block;
        const long of_block = indptr[min(start + block, n_rows)] - indptr[start];
        if ((of_block >= threshold * block) != side)
            return -1;
    }
    return (int)min(workload / granularity, (long)${n_bins - 1});
}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const long n_rows, const long granularity, const long block, const long threshold, const int side,
    global const I *restrict indptr,
% if step == "histogram":
    global int *restrict histograms)
% else:
    const long n_chunks, const int n_lists, global const int *restrict list_of_bin, global I *restrict counts${")" if step == "count" else ","}
% endif
% if step == "place":
    global I *restrict rows)
% endif
{
    const long n_virtual = (n_rows + granularity - 1) / granularity;
% if step == "histogram":
    local int bins[${n_bins}];
    for (uint b = get_local_id(0); b < ${n_bins}; b += ${work_group})
        bins[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long v = get_global_id(0); v < n_virtual; v += get_global_size(0)) {
        const int bin = bin_of(v, n_rows, granularity, block, threshold, side, indptr);
        if (bin >= 0)
            atomic_inc(bins + bin);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint b = get_local_id(0); b < ${n_bins}; b += ${work_group})
        histograms[${n_bins} * get_group_id(0) + b] = bins[b];
% else:
    const long chunk = get_global_id(0);
    if (chunk >= n_chunks)
        return;
    const long per_chunk = (n_virtual + n_chunks - 1) / n_chunks;
    const long end = min((chunk + 1) * per_chunk, n_virtual);
% if step == "count":
    for (int list = 0; list < n_lists; ++list)
        counts[list * n_chunks + chunk] = 0;
% endif
    for (long v = chunk * per_chunk; v < end; ++v) {
        const int bin = bin_of(v, n_rows, granularity, block, threshold, side, indptr);
        const int list = bin < 0 ? -1 : list_of_bin[bin];
        if (list >= 0) {
% if step == "count":
            counts[list * n_chunks + chunk] += 1;
% else:
            rows[counts[list * n_chunks + chunk]++] = v;
% endif
        }
    }
% endif
}
