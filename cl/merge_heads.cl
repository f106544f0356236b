// Heads of the rows of B that a row of A names, for kernels that merge these rows.
//
// Each head has a number u. Of head u, COLUMN_OF(u) is its column, NO_COLUMN at its row's end; AT(u) where that is in B; LEFT(u) how
// many entries its row has from there on; FACTOR(u) the value of A, outside the symbolic phase. The TEAM work-items of a row have
// HEADS heads each at most: lane l has those of entries l, TEAM + l, ... of A's row, which begins at entry `begin` and has `length`.
//
// HEADS_IN_REGISTERS 1: in registers, and u is a number that the template unrolls. 0: in local memory, and u is a variable of a loop.
//
// HEADS_IN_LOCAL_MEMORY     declares the arrays in local memory; `me` is the work-item's number in its work-group then.
// HEAD(u)                   declares head u as one without entries.
// EACH_TAKEN(u) statement   for the heads that have an entry of A.
// TAKE_HEAD(u)              begins head u: declares a, its entry of A, and sets AT(u) and LEFT(u).
// START_HEAD(u)             loads its first column.
// TAKE_FACTOR(u)            loads its value of A.
// EACH_HEAD(u) statement    for all heads.
// ADD_PRODUCT(u)            adds its product to `sum`, outside the symbolic phase.
// ADVANCE_HEAD(u)           goes to the next column.
#ifndef SYMBOLIC
    #error "merge_heads.cl needs SYMBOLIC: 1 in the symbolic phase, else 0"
#endif
#ifndef TEAM
    #error "merge_heads.cl needs TEAM: work-items to a row"
#endif
#ifndef HEADS
    #error "merge_heads.cl needs HEADS: heads of a work-item"
#endif
#ifndef HEADS_IN_REGISTERS
    #error "merge_heads.cl needs HEADS_IN_REGISTERS: 1, or 0 for local memory"
#endif
#if HEADS_IN_REGISTERS
    #define COLUMN_OF(u) column_##u
    #define AT(u) at_##u
    #define LEFT(u) left_##u
    #define FACTOR(u) factor_##u
    #define HEADS_IN_LOCAL_MEMORY
    #if SYMBOLIC
        #define HEAD(u) I at_##u = 0; COLUMN left_##u = 0, column_##u = NO_COLUMN;
    #else
        #define HEAD(u) I at_##u = 0; COLUMN left_##u = 0, column_##u = NO_COLUMN; T factor_##u = ZERO;
    #endif
    #define EACH_TAKEN(u) if ((u) * TEAM + lane < length)
    #define EACH_HEAD(u)
#else
    #define COLUMN_OF(u) columns[(u) * WORK_GROUP + me]
    #define AT(u) at[(u) * WORK_GROUP + me]
    #define LEFT(u) left[(u) * WORK_GROUP + me]
    #define FACTOR(u) factors[(u) * WORK_GROUP + me]
    #define HEADS_WITHOUT_FACTORS \
        local COLUMN columns[HEADS * WORK_GROUP], left[HEADS * WORK_GROUP]; \
        local I at[HEADS * WORK_GROUP];
    #if SYMBOLIC
        #define HEADS_IN_LOCAL_MEMORY HEADS_WITHOUT_FACTORS
    #else
        #define HEADS_IN_LOCAL_MEMORY HEADS_WITHOUT_FACTORS local T factors[HEADS * WORK_GROUP];
    #endif
    #define HEAD(u)
    #define EACH_TAKEN(u) for (uint u = 0; u < (length + TEAM - 1 - lane) / TEAM; ++u)
    #define EACH_HEAD(u) EACH_TAKEN(u)
#endif

#define TAKE_HEAD(u) \
    const I a = begin + (I)((u) * TEAM + lane), k = a_indices[a]; \
    AT(u) = b_indptr[k]; \
    LEFT(u) = (COLUMN)(b_indptr[k + 1] - b_indptr[k]);
#define START_HEAD(u) COLUMN_OF(u) = LEFT(u) ? (COLUMN)b_indices[AT(u)] : NO_COLUMN;
#define ADVANCE_HEAD(u) \
    ++AT(u); \
    COLUMN_OF(u) = --LEFT(u) ? (COLUMN)b_indices[AT(u)] : NO_COLUMN;
#if SYMBOLIC
    #define TAKE_FACTOR(u)
    #define ADD_PRODUCT(u)
#else
    #define TAKE_FACTOR(u) FACTOR(u) = from_a(a_data[a]);
    #define ADD_PRODUCT(u) sum = ADD(sum, MULTIPLY(FACTOR(u), from_x(b_data[AT(u)])));
#endif
