// The places in C of the entries of a slice of rows, for products by ESC (expand, sort, compress).
//
// ESC_PLACE(run): the place in C of entry number `run` of the slice, which has n_rows rows from slot `begin` on.
// runs_before[r] is the number of the slice's entries before row r; runs_before[n_rows] is the number of all its entries.
// A slice is a set of rows of C whose products are expanded at once; unless LISTED, the rows of a slice are adjacent in C.
#include "spgemm_rows.cl"

#if LISTED
    ulong esc_row_of(global const uint *restrict runs_before, const ulong n_rows, const uint run)
    {
        ulong row = 0;
        for (ulong above = n_rows; row + 1 < above;) {
            const ulong middle = (row + above) / 2;
            if (runs_before[middle] <= run)
                row = middle;
            else
                above = middle;
        }
        return row;
    }

    ulong esc_place(
        const ulong n_rows, const ulong first, global const I *restrict rows, const ulong begin,
        global const uint *restrict runs_before, global const C_INDEX *restrict c_indptr, const uint run)
    {
        const ulong slot = esc_row_of(runs_before, n_rows, run);
        return (ulong)c_indptr[SPGEMM_ROW(begin + slot)] + (run - runs_before[slot]);
    }
    #define ESC_PLACE(run) esc_place(n_rows, first, rows, begin, runs_before, c_indptr, run)
#else
    #define ESC_PLACE(run) ((ulong)c_indptr[begin] + (run))
#endif
