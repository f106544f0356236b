// The mirror image of an entry (row, column) of a square matrix: its entry (column, row). Rows are sorted, columns unique.
//
// mirror_guess(begin, end, before): a guess at the mirror image's position in row `column`, whose entries are begin to end.
//     The guess is as far from the end of row `column` as (row, column) is from the beginning of its own row: `before` entries.
//     The guess of mirror_guess is mostly right in the matrix of a stencil.
// mirror_search(indices, begin, end, guess, row): the position of the mirror image, looked for at the guess first; -1 for none.
static inline __attribute__((always_inline)) I mirror_guess(const I begin, const I end, const I before)
{
    return end - 1 - before > begin ? end - 1 - before : begin;
}

static inline __attribute__((always_inline)) I mirror_search(global const I *indices, I begin, I end, I guess, const I row)
{
    // After a wrong guess at the mirror image's position, the second guess takes columns to ascend by one, as in a dense block.
    // After the second guess at the mirror image's position, a bisection of the rest of the row finds the image.
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
