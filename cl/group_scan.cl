// Exclusive scans of a uint over a work-group of any size.
//
// group_scan_add(box, x), group_scan_max(box, x): the sum, or maximum, of x over the work-items before this one; 0 in the first.
// group_scan_add and group_scan_max have barriers: the whole work-group has to call them; box holds a uint for each work-item.
//
// Loops that hold a barrier have a trip count that the compiler knows (quirk 4).
#ifndef WORK_GROUP
    #error "group_scan.cl needs WORK_GROUP: the work-group size"
#endif
#include "lanes.cl"

#if LANE_WIDTH > 1 && WORK_GROUP % LANE_WIDTH == 0
// OF_EARLIER_TEAMS combines earlier teams of LANE_WIDTH lanes: up to 8 one by one, more by a scan with a lane for each team.
#if WORK_GROUP / LANE_WIDTH > 8 && WORK_GROUP / LANE_WIDTH <= LANE_WIDTH
#define OF_EARLIER_TEAMS(T, LANES_XOR, OPERATION) \
        T earlier = me % LANE_WIDTH < me / LANE_WIDTH ? box[me % LANE_WIDTH] : 0; \
        for (uint step = 1; step < LANE_WIDTH; step *= 2) { \
            const T x = LANES_XOR(earlier, step), y = earlier; \
            earlier = OPERATION; \
        } \
        { \
            const T x = earlier, y = before; \
            before = OPERATION; \
        }
#else
#define OF_EARLIER_TEAMS(T, LANES_XOR, OPERATION) \
        for (uint i = 0; i < me / LANE_WIDTH; ++i) { \
            const T x = box[i], y = before; \
            before = OPERATION; \
        }
#endif
#if defined(LANES_BY_PTX)
// Each scan reads the lane's number anew: else compilers keep values that depend on the number in registers between scans.
#define OWN_NUMBER uint me; asm volatile("mov.u32 %0, %1;" : "=r"(me) : "r"((uint)get_local_id(0)));
#else
#define OWN_NUMBER const uint me = get_local_id(0);
#endif
#define GROUP_SCAN(NAME, T, LANES_XOR, OPERATION) \
    T group_scan_##NAME(local T *box, const T mine) \
    { \
        OWN_NUMBER \
        T before = 0, total = mine; \
        for (uint step = 1; step < LANE_WIDTH; step *= 2) { \
            const T x = LANES_XOR(total, step), y = before; \
            if (me & step) \
                before = OPERATION; \
            { \
                const T y = total; \
                total = OPERATION; \
            } \
        } \
        if (me % LANE_WIDTH == 0) \
            box[me / LANE_WIDTH] = total; \
        barrier(CLK_LOCAL_MEM_FENCE); \
        OF_EARLIER_TEAMS(T, LANES_XOR, OPERATION) \
        barrier(CLK_LOCAL_MEM_FENCE); \
        return before; \
    }
#else
// A work-item scans its part of SCAN_PART numbers by itself: that takes few barriers, the costliest operation of CPU runtimes.
#define SCAN_PART 32
#define GROUP_SCAN(NAME, T, LANES_XOR, OPERATION) \
    T group_scan_##NAME(local T *box, const T mine) \
    { \
        const uint me = get_local_id(0), part = me / SCAN_PART; \
        T before = 0; \
        box[me] = mine; \
        barrier(CLK_LOCAL_MEM_FENCE); \
        for (uint i = part * SCAN_PART; i < me; ++i) { \
            const T x = box[i], y = before; \
            before = OPERATION; \
        } \
        barrier(CLK_LOCAL_MEM_FENCE); \
        if (me % SCAN_PART == SCAN_PART - 1) { \
            const T x = mine, y = before; \
            box[part] = OPERATION; \
        } \
        barrier(CLK_LOCAL_MEM_FENCE); \
        for (uint i = 0; i < part; ++i) { \
            const T x = box[i], y = before; \
            before = OPERATION; \
        } \
        barrier(CLK_LOCAL_MEM_FENCE); \
        return before; \
    }
#endif
GROUP_SCAN(add, uint, lanes_xor_u32, x + y)
GROUP_SCAN(max, uint, lanes_xor_u32, max(x, y))
