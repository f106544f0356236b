// Writes of entries of C by work-items that make a row of C each, one entry after another.
// Entries go straight to C or, with STAGED entries to a work-item, by way of local memory, so that work-items write side by side.
// The rows of a work-group are neighbours in C if entries are staged in local memory.
//
// STAGE_C               declares the local memory, and the place in C of the work-group's entries; at the beginning of a kernel.
// PUT_ENTRY(column, x)  writes entry `place` of C; with VALUES_ONLY its value alone, as its column is there.
// WRITE_STAGED          writes the staged entries; all work-items come here; `me` is the work-item's number in its work-group.
#ifndef STAGED
    #error "staged_c.cl needs STAGED: entries staged for each work-item, 0 for none"
#endif
#ifndef VALUES_ONLY
    #error "staged_c.cl needs VALUES_ONLY: 1 if columns are there, else 0"
#endif
#if VALUES_ONLY
    #define PUT_IN_C(to, column, x) c_data[to] = x;
#else
    #define PUT_IN_C(to, column, x) \
        c_indices[to] = (C_INDEX)(column); \
        c_data[to] = x;
#endif
#if STAGED
    // Places in the tile of local memory have gaps, so that work-items do not meet in a bank of local memory.
    #define IN_TILE(i) ((i) + (i) / 32)
    #if VALUES_ONLY
        #define TILE_OF_COLUMNS
        #define PUT_IN_TILE(i, column, x) tile[i] = x;
    #else
        #define TILE_OF_COLUMNS local COLUMN tile_columns[IN_TILE(WORK_GROUP * STAGED)];
        #define PUT_IN_TILE(i, column, x) \
            tile_columns[i] = column; \
            tile[i] = x;
    #endif
    #define STAGE_C \
        TILE_OF_COLUMNS \
        local T tile[IN_TILE(WORK_GROUP * STAGED)]; \
        const ulong first_row = (ulong)get_group_id(0) * WORK_GROUP; \
        const C_INDEX to_c = c_indptr[min(first_row, n_rows)]; \
        const C_INDEX n_found = c_indptr[min(first_row + WORK_GROUP, n_rows)] - to_c; \
        const bool staged_c = n_found <= WORK_GROUP * STAGED;
    #define PUT_ENTRY(column, x) \
        if (staged_c) { \
            const uint in_tile = IN_TILE((uint)(place - to_c)); \
            PUT_IN_TILE(in_tile, column, x) \
        } else { \
            PUT_IN_C(place, column, x) \
        }
    #define WRITE_STAGED \
        barrier(CLK_LOCAL_MEM_FENCE); \
        if (staged_c) { \
            for (uint i = me; i < (uint)n_found; i += WORK_GROUP) { \
                PUT_IN_C(to_c + (C_INDEX)i, tile_columns[IN_TILE(i)], tile[IN_TILE(i)]) \
            } \
        }
#else
    #define STAGE_C
    #define PUT_ENTRY(column, x) PUT_IN_C(place, column, x)
    #define WRITE_STAGED
#endif
