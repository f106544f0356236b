// The rows of C that a kernel computes, numbered by slots.
//
// SPGEMM_ROWS: the first parameters of a kernel that computes rows of C.
// SPGEMM_ROW(s): the row of C of slot s, s < n_rows: rows[first + s] with LISTED, else row s.
#ifndef LISTED
    #error "spgemm_rows.cl needs LISTED: 1 if rows are listed, else 0"
#endif
#if LISTED
    #define SPGEMM_ROWS const ulong n_rows, const ulong first, global const I *restrict rows,
    #define SPGEMM_ROW(slot) ((ulong)rows[first + (slot)])
#else
    #define SPGEMM_ROWS const ulong n_rows,
    #define SPGEMM_ROW(slot) ((ulong)(slot))
#endif
