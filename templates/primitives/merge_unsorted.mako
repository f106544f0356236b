<%doc>
The number of keys that are below the key before them in their run: counts[group], to be summed.

Index space   any number of work-groups, which stride over keys and runs
Inputs        run_ptr: n_runs + 1, unchecked
Local memory  work_group * sizeof(long)
Result        exact if run_ptr is valid: falls at a run's beginning are counted by run and taken away
</%doc>
#include "group.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const long n, const long n_runs, global const I *restrict run_ptr, global const K *restrict keys, global long *restrict counts)
{
    SHARED long box[${work_group}];
    long falls = 0;
    for (long k = get_global_id(0); k < n; k += get_global_size(0))
        if (k > 0)
            falls += keys[k] < keys[k - 1];
    for (long run = get_global_id(0); run < n_runs; run += get_global_size(0)) {
## The condition below tests first whether the run of keys is empty (quirk 22).
        const I begin = run_ptr[run];
        if (run_ptr[run + 1] > begin && begin > 0 && begin < n)
            falls -= keys[begin] < keys[begin - 1];
    }
    falls = group_reduce_add(box, falls);
    if (get_local_id(0) == 0)
        counts[get_group_id(0)] = falls;
}
