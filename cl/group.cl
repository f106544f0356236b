// Reductions of a long over a work-group of any size.
//
// group_reduce_add(box, x), group_reduce_min(box, x): the sum or minimum of x over the work-group, in every work-item; box holds a
// long for each. They have barriers, so the whole work-group has to call them.
//
// Loops that hold a barrier have a trip count that the compiler knows (quirk 4).
#ifndef WORK_GROUP
    #error "group.cl needs WORK_GROUP: the work-group size"
#endif
#define GROUP_REDUCE(NAME, OPERATION) \
    long group_reduce_##NAME(local long *box, const long mine) \
    { \
        const uint me = get_local_id(0); \
        box[me] = mine; \
        barrier(CLK_LOCAL_MEM_FENCE); \
        for (uint step = 1; step < WORK_GROUP; step *= 2) { \
            if (me % (2 * step) == 0 && me + step < WORK_GROUP) { \
                const long x = box[me], y = box[me + step]; \
                box[me] = OPERATION; \
            } \
            barrier(CLK_LOCAL_MEM_FENCE); \
        } \
        const long total = box[0]; \
        barrier(CLK_LOCAL_MEM_FENCE); \
        return total; \
    }
GROUP_REDUCE(add, x + y)
GROUP_REDUCE(min, min(x, y))
