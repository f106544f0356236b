// row_of(indptr, from, last, entry): the row that an entry lies in, among the rows from `from` to `last`; it lies in none before
// `from`. Takes steps that double, then halves: few loads if the row is near, and at most twice the logarithm of the rows.
I row_of(global const I *indptr, const I from, const I last, const I entry)
{
    I row = from, step = 1;
    while (last - row >= step && indptr[row + step] <= entry) {
        row += step;
        step *= 2;
    }
    // The entry lies before row + step, or behind the last row's begin.
    I above = last - row >= step ? row + step : last + 1;
    while (above - row > 1) {
        const I middle = row + (above - row) / 2;
        if (indptr[middle] <= entry)
            row = middle;
        else
            above = middle;
    }
    return row;
}
