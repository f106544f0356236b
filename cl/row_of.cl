// row_of(indptr, from, last, first_step, entry): the row of an entry, among the rows `from` to `last`, by a galloping search.
// The steps of the galloping search double, then halve. A first step of 1 takes few loads if the row is near row `from`.
// A first step of half the rows makes the search of row_of take log2(rows) loads wherever the row is.
I row_of(global const I *indptr, const I from, const I last, const I first_step, const I entry)
{
    I row = from, step = first_step;
    while (last - row >= step && indptr[row + step] <= entry) {
        row += step;
        step += min(step, last - row);  // which cannot overflow
    }
    // After the doubling steps the entry lies before the beginning of row + step, or the last row is less than a step away.
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
