// The bucket (entries of adjacent columns, sorted together) that a part belongs to: a long bucket has parts, for work-groups.
//
// bucket_of_part(...): the bucket b with parts_before[b] <= part < parts_before[b + 1]; 0 for parts behind the last bucket.
// bucket_of_part has barriers, so the whole work-group has to call it; box holds a uint.
#ifndef WORK_GROUP
    #error "bucket_part.cl needs WORK_GROUP: the work-group size"
#endif
uint bucket_of_part(local uint *box, global const uint *parts_before, const uint n_buckets, const uint part)
{
    if (get_local_id(0) == 0)
        *box = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    // All buckets are tested in parallel for the part: each step of a bisection would wait for a load.
    for (uint i = get_local_id(0); i < n_buckets; i += WORK_GROUP) {
        if (parts_before[i] <= part && part < parts_before[i + 1])
            *box = i;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return *box;
}
