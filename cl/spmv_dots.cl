// Common to SpMV kernels that sum whole rows: the update of y in a row, and the inner products of y.
//
// STORE(row, sum) updates the entry of y in a row by the sum of the row's products.
//
// DOTS 1: the kernel begins the inner products of y with x and with itself. `dots` has the first one's partial sums, one for each
// work-group, and then as many of the second one. Work-groups are few: each takes several parts (what a work-group takes without
// DOTS). EACH_PART and END_PARTS are around the work on a part. Parameters follow SPMV_OPERANDS.
#ifndef DOTS
    #error "spmv_dots.cl needs DOTS: 1 if the kernel begins inner products of y, else 0"
#endif
#include "spmv.cl"
#include "group_sum.cl"

#if DOTS
    #if T_IS_COMPLEX
        #define CONJUGATE(v) ((T)((v).x, -(v).y))
    #else
        #define CONJUGATE(v) (v)
    #endif
    #define DOTS_PARAMETERS global T *restrict dots, const ulong n_parts,
    #define DECLARE_DOTS T xy = ZERO, yy = ZERO;
    #define STORE(row, sum) do { \
        const T stored = update(SCALE_ARGUMENTS y + (row), sum); \
        xy = ADD(xy, MULTIPLY(CONJUGATE(LOAD_X(x_base + x_offset + (row))), stored)); \
        yy = ADD(yy, MULTIPLY(CONJUGATE(stored), stored)); \
    } while (false)
    #define WRITE_DOTS(box) \
        xy = group_sum(box, xy); \
        yy = group_sum(box, yy); \
        if (get_local_id(0) == 0) { \
            dots[get_group_id(0)] = xy; \
            dots[get_num_groups(0) + get_group_id(0)] = yy; \
        }
    #define EACH_PART for (ulong part = get_group_id(0); part < n_parts; part += get_num_groups(0)) {
    #define END_PARTS barrier(CLK_LOCAL_MEM_FENCE); }
#else
    #define DOTS_PARAMETERS
    #define DECLARE_DOTS
    #define STORE(row, sum) update(SCALE_ARGUMENTS y + (row), sum)
    #define WRITE_DOTS(box)
    #define EACH_PART const ulong part = get_group_id(0);
    #define END_PARTS
#endif
