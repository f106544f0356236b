// merge_serial(source, a, a_end, b, b_end, target, to, to_end): writes the merge of two sorted runs of `source` to `target`.
// The two sorted runs are the elements from a to a_end and from b to b_end of `source`.
// Of equal keys in the merge, those of the run at a come first.
// Elements of `target` are written from `to` up to `to_end`, which may be before the end of the merge.
#include "elements.cl"

void merge_serial(
    CONST_ELEMENTS(source), long a, const long a_end, long b, const long b_end, ELEMENTS(target), long to, const long to_end)
{
    if (a < a_end && b < b_end) {
        K key_a = source_keys[a], key_b = source_keys[b];
        while (to < to_end) {
            if (key_b < key_a) {
                MOVE(target, to, source, b)
                ++to;
                if (++b == b_end)
                    break;
                key_b = source_keys[b];
            } else {
                MOVE(target, to, source, a)
                ++to;
                if (++a == a_end)
                    break;
                key_a = source_keys[a];
            }
        }
    }
    for (; to < to_end && a < a_end; ++to, ++a)
        MOVE(target, to, source, a)
    for (; to < to_end; ++to, ++b)
        MOVE(target, to, source, b)
}
