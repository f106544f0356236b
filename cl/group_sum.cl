// The sum of a value over all work-items of a work-group, in every one of them, always in the same order.
//
// group_sum(box, x): the whole work-group calls it; box has a T for each work-item, which nobody else uses meanwhile.
#ifndef WORK_GROUP
    #error "group_sum.cl needs WORK_GROUP: the number of work-items of a work-group"
#endif
T group_sum(local T *box, T x)
{
#if WORK_GROUP > 1
    const uint me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    box[me] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint n = WORK_GROUP; n > 1; n = (n + 1) / 2) {
        if (me < n / 2)
            box[me] = ADD(box[me], box[me + (n + 1) / 2]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    x = box[0];
#endif
    return x;
}
