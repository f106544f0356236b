<%doc>
Columns of A's entries in 16 bits: their differences to the lowest column of the part of A in which they lie.

Index space   n_parts work-groups
Inputs        part_entry: n_parts + 1, of partition.mako; indices
Output        columns: one for each entry; of each part lowest, and too_wide: 1 if columns are 2^16 apart or more, and differences
              of no use
Local memory  2 * work_group * sizeof(I)
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    global const I *restrict part_entry, global const I *restrict indices,
    global ushort *restrict columns, global I *restrict lowest, global uchar *restrict too_wide)
{
    local I lows[${work_group}], highs[${work_group}];
    const uint me = get_local_id(0);
    const ulong part = get_group_id(0);
    const ulong begin = part_entry[part], end = part_entry[part + 1];
    I low = begin < end ? indices[begin] : 0, high = low;
    for (ulong k = begin + me; k < end; k += ${work_group}) {
        const I column = indices[k];
        low = column < low ? column : low;
        high = column > high ? column : high;
    }
    lows[me] = low;
    highs[me] = high;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < ${work_group}; ++i) {
        low = lows[i] < low ? lows[i] : low;
        high = highs[i] > high ? highs[i] : high;
    }
    for (ulong k = begin + me; k < end; k += ${work_group})
        columns[k] = (ushort)(indices[k] - low);
    if (me == 0) {
        lowest[part] = low;
        too_wide[part] = high - low > 65535;
    }
}
