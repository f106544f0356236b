// Which bucket a part belongs to: the only one before which no more than so many parts lie, and after which more do. 0 for parts
// behind the last. box holds a uint. Has barriers, so the whole work-group has to call it.
#ifndef WORK_GROUP
    #error "bucket_part.cl needs WORK_GROUP: the work-group size"
#endif
uint bucket_of_part(local uint *box, global const uint *parts_before, const uint n_buckets, const uint part)
{
    if (get_local_id(0) == 0)
        *box = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    // All are looked at together: to halve a range takes a wait a step.
    for (uint i = get_local_id(0); i < n_buckets; i += WORK_GROUP) {
        if (parts_before[i] <= part && part < parts_before[i + 1])
            *box = i;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return *box;
}
