// Which rows of C a kernel makes.
//
// SPGEMM_ROWS come first among the parameters of each such kernel. LISTED: slot s of n_rows stands for rows[first + s], else for row s.
//
// SPGEMM_ROW(s): the row that slot s stands for.
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
