// The mirror image of an entry (row, column) of a square matrix: its entry (column, row). Rows are sorted, columns unique.
//
// mirror_guess(begin, end, before):                  where it stands in row `column`, which holds the entries from begin to end, if
//                                                    that is as far from the row's end as (row, column) is from its row's beginning,
//                                                    which `before` entries precede it. In a stencil's matrix it is, mostly.
// mirror_search(indices, begin, end, guess, row):    where it stands, looked for at the guess first; -1 where there is none.
static inline __attribute__((always_inline)) I mirror_guess(const I begin, const I end, const I before)
{
    return end - 1 - before > begin ? end - 1 - before : begin;
}

static inline __attribute__((always_inline)) I mirror_search(global const I *indices, I begin, I end, I guess, const I row)
{
    // Behind a wrong first guess, the second one takes adjacent columns to differ by one, as in a dense block; then ranges are halved.
    bool dense = true;
    while (begin < end) {
        const I column = indices[guess];
        if (column == row)
            return guess;
        if (column < row) {
            const bool inside = dense && row - column < end - guess;
            begin = guess + 1;
            guess = inside ? guess + (row - column) : begin + (end - begin) / 2;
        } else {
            const bool inside = dense && column - row <= guess - begin;
            end = guess;
            guess = inside ? guess - (column - row) : begin + (end - begin) / 2;
        }
        dense = false;
    }
    return -1;
}
