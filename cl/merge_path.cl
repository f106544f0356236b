// Merge path (Green, McColl and Bader, "GPU merge path"): the split of two sorted runs after a number of outputs of their merge.
//
// merge_path_global(a, n_a, b, n_b, diagonal): the number of keys of a among the first `diagonal` keys of the merge of a and b.
// merge_path_local(a, n_a, b, n_b, diagonal): as merge_path_global, of keys in local memory. a has n_a keys, and b has n_b.
// Of equal keys in the merge of a and b, those of a come first.
#define MERGE_PATH(SPACE, COUNT) \
    COUNT merge_path_##SPACE( \
        SPACE const K *a, const COUNT n_a, SPACE const K *b, const COUNT n_b, const COUNT diagonal) \
    { \
        COUNT low = diagonal > n_b ? diagonal - n_b : 0, high = min(diagonal, n_a); \
        while (low < high) { \
            const COUNT middle = low + (high - low) / 2; \
            if (b[diagonal - 1 - middle] < a[middle]) \
                high = middle; \
            else \
                low = middle + 1; \
        } \
        return low; \
    }
MERGE_PATH(global, long)
MERGE_PATH(local, uint)
