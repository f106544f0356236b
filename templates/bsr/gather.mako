<%doc>
The blocks of a matrix of blocks in another order: moved, transposed or summed, by the `way`.

Source        own
Index space   a work-item for each row of each new block; or, if `entries`, a work-group to `at_once` new blocks, neighbours
              having neighbouring entries
Inputs        a new block has block_rows x block_columns; numbers: of the source's blocks; of sums, the blocks with the
              numbers from starts[k] to starts[k + 1] - 1 are summed to block k
Local memory  none
Result        deterministic: blocks are summed in the order of `numbers`
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n, const I block_rows, const I block_columns, global const I *restrict numbers,
% if way == "summed":
    global const I *restrict starts,
% endif
    global const V *restrict source, global V *restrict blocks)
{
% if entries:
    const ulong first = get_group_id(0) * (ulong)${at_once};
    const uint size = (uint)(block_rows * block_columns), end = (uint)min(n - first, (ulong)${at_once}) * size;
    for (uint at = get_local_id(0); at < end; at += ${work_group}) {
        const uint k = at / size, e = at - k * size, r = e / (uint)block_columns, c = e - r * (uint)block_columns;
        global const V *restrict block = source + numbers[first + k] * (ulong)size;
        blocks[first * size + at] = block[${"c * (uint)block_rows + r" if way == "transposed" else "e"}];
    }
% else:
    const ulong i = get_global_id(0);
    if (i >= n)
        return;
    const ulong k = i / block_rows, r = i - k * block_rows, size = (ulong)block_rows * block_columns;
    global V *restrict target = blocks + i * block_columns;
% if way == "summed":
    const I begin = starts[k], end = starts[k + 1];
    for (I c = 0; c < block_columns; ++c) {
        V sum = source[numbers[begin] * size + r * block_columns + c];
        for (I s = begin + 1; s < end; ++s)
            sum = SUM(sum, source[numbers[s] * size + r * block_columns + c]);
        target[c] = sum;
    }
% else:
    global const V *restrict block = source + numbers[k] * size;
    for (I c = 0; c < block_columns; ++c)
        target[c] = block[${"c * block_rows + r" if way == "transposed" else "r * block_columns + c"}];
% endif
% endif
}
