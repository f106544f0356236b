// Heads (current entries) of the rows of B that a row of A names, for kernels that merge these rows.
//
// A head is the current entry of a row of B. Each of the TEAM work-items (lanes) of a row of A has at most HEADS heads.
// Lane l has the heads of the rows of B that entries l, TEAM + l, ... of the row of A name.
// The row of A begins at entry `begin` and has `length` entries.
//
// COLUMN_OF(u)                 the column of head u, the current entry of a row of B; NO_COLUMN behind the end of the row.
// POSITION(u)                  the position of head u, the current entry of a row of B, in B's arrays.
// REMAINING(u)                 the number of entries of a row of B from head u, its current entry, on.
// FACTOR(u)                    the value of A that multiplies the row of B of head u; not in the symbolic phase.
//
// HEADS_IN_REGISTERS 1: heads (entries of rows of B) are in registers, and the u of macros is a literal of the template.
// HEADS_IN_REGISTERS 0: heads (entries of rows of B) are in local memory, and the u of macros is a loop variable.
//
// HEADS_IN_LOCAL_MEMORY        declares the heads' arrays; other macros need `me`, the work-item's number in its work-group.
// HEAD(u)                      declares head u, the current entry of a row of B, without entries.
// FOR_USED_HEADS(u) statement  runs the statement for the heads whose rows of B an entry of A names.
// FOR_HEADS(u) statement       runs the statement for all heads, the current entries of rows of B.
// TAKE_HEAD(u)                 sets POSITION(u) and REMAINING(u) for a row of B; declares a, the entry of A that names the row.
// START_HEAD(u)                loads the first column of the row of B of head u.
// TAKE_FACTOR(u)               loads the value of A that multiplies the row of B of head u.
// ADD_PRODUCT(u)               adds A's value times the value of head u (the current entry of a row of B) to `sum`.
// ADVANCE_HEAD(u)              moves head u to the next entry of its row of B.
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
    #define POSITION(u) position_##u
    #define REMAINING(u) remaining_##u
    #define FACTOR(u) factor_##u
    #define HEADS_IN_LOCAL_MEMORY
    #if SYMBOLIC
        #define HEAD(u) I position_##u = 0; COLUMN remaining_##u = 0, column_##u = NO_COLUMN;
    #else
        #define HEAD(u) I position_##u = 0; COLUMN remaining_##u = 0, column_##u = NO_COLUMN; T factor_##u = ZERO;
    #endif
    #define FOR_USED_HEADS(u) if ((u) * TEAM + lane < length)
    #define FOR_HEADS(u)
#else
    #define COLUMN_OF(u) columns[(u) * WORK_GROUP + me]
    #define POSITION(u) positions[(u) * WORK_GROUP + me]
    #define REMAINING(u) remaining[(u) * WORK_GROUP + me]
    #define FACTOR(u) factors[(u) * WORK_GROUP + me]
    #define HEADS_WITHOUT_FACTORS \
        local COLUMN columns[HEADS * WORK_GROUP], remaining[HEADS * WORK_GROUP]; \
        local I positions[HEADS * WORK_GROUP];
    #if SYMBOLIC
        #define HEADS_IN_LOCAL_MEMORY HEADS_WITHOUT_FACTORS
    #else
        #define HEADS_IN_LOCAL_MEMORY HEADS_WITHOUT_FACTORS local T factors[HEADS * WORK_GROUP];
    #endif
    #define HEAD(u)
    #define FOR_USED_HEADS(u) for (uint u = 0; u < (length + TEAM - 1 - lane) / TEAM; ++u)
    #define FOR_HEADS(u) FOR_USED_HEADS(u)
#endif

#define TAKE_HEAD(u) \
    const I a = begin + (I)((u) * TEAM + lane), k = a_indices[a]; \
    POSITION(u) = b_indptr[k]; \
    REMAINING(u) = (COLUMN)(b_indptr[k + 1] - b_indptr[k]);
#define START_HEAD(u) COLUMN_OF(u) = REMAINING(u) ? (COLUMN)b_indices[POSITION(u)] : NO_COLUMN;
#define ADVANCE_HEAD(u) \
    ++POSITION(u); \
    COLUMN_OF(u) = --REMAINING(u) ? (COLUMN)b_indices[POSITION(u)] : NO_COLUMN;
#if SYMBOLIC
    #define TAKE_FACTOR(u)
    #define ADD_PRODUCT(u)
#else
    #define TAKE_FACTOR(u) FACTOR(u) = from_a(a_data[a]);
    #define ADD_PRODUCT(u) sum = ADD(sum, MULTIPLY(FACTOR(u), from_x(b_data[POSITION(u)])));
#endif
