// Reductions of a long over a work-group of any size.
//
// group_reduce_add(box, x), group_reduce_min(box, x): the sum or minimum of x over the work-group, in every work-item.
// group_reduce_add and group_reduce_min have barriers, so the whole work-group has to call them.
// The box of group_reduce_add and group_reduce_min, which is SHARED, holds a long for each work-item.
//
// SHARED is the memory that a work-group shares, and GROUP_BARRIER a barrier for it.
// For a work-group of one work-item SHARED is private memory and GROUP_BARRIER is nothing, so that kernels are plain.
//
// Loops that hold a barrier have a trip count that the compiler knows (quirk 4).
#ifndef WORK_GROUP
    #error "group.cl needs WORK_GROUP: the work-group size"
#endif
#if WORK_GROUP == 1
    #define SHARED
    #define GROUP_BARRIER
#else
    #define SHARED local
    #define GROUP_BARRIER barrier(CLK_LOCAL_MEM_FENCE);
#endif
#define GROUP_REDUCE(NAME, OPERATION) \
    long group_reduce_##NAME(SHARED long *box, const long mine) \
    { \
        const uint me = get_local_id(0); \
        box[me] = mine; \
        GROUP_BARRIER \
        for (uint step = 1; step < WORK_GROUP; step *= 2) { \
            if (me % (2 * step) == 0 && me + step < WORK_GROUP) { \
                const long x = box[me], y = box[me + step]; \
                box[me] = OPERATION; \
            } \
            GROUP_BARRIER \
        } \
        const long total = box[0]; \
        GROUP_BARRIER \
        return total; \
    }
GROUP_REDUCE(add, x + y)
GROUP_REDUCE(min, min(x, y))
