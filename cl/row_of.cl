// row_of(indptr, from, last, first_step, entry): the row that an entry lies in, among the rows from `from` to `last`; it lies in
// none before `from`. Takes steps that double, then halves. With a first step of 1 loads are few if the row is near; with one of
// half the rows they are as many as the logarithm of the rows, wherever it is.
I row_of(global const I *indptr, const I from, const I last, const I first_step, const I entry)
{
    I row = from, step = first_step;
    while (last - row >= step && indptr[row + step] <= entry) {
        row += step;
        step += min(step, last - row);  // which cannot overflow
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
