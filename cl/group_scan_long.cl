// Exclusive scan of a ulong over a work-group of any size.
//
// group_scan_add_long(box, x): as group_scan_add(box, x) of group_scan.cl; box holds a ulong for each work-item.
#include "group_scan.cl"
#include "lanes_u64.cl"

GROUP_SCAN(add_long, ulong, lanes_xor_u64, x + y)
