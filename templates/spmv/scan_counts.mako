<%doc>
Exclusive scan of counts, in place, by one work-group: for the few thousand counts that binning makes.

Index space   one work-group
Inputs        n counts whose sum fits the index type
Local memory  work_group * sizeof(I)
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const long n, global I *restrict counts)
{
    local I sums[${work_group}];
    const uint me = get_local_id(0);
    const long per_item = (n + ${work_group - 1}) / ${work_group};
    const long begin = min(me * per_item, n), end = min(begin + per_item, n);
    I sum = 0;
    for (long i = begin; i < end; ++i)
        sum += counts[i];
    sums[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    I before = 0;
    for (uint i = 0; i < me; ++i)
        before += sums[i];
    for (long i = begin; i < end; ++i) {
        const I count = counts[i];
        counts[i] = before;
        before += count;
    }
}
