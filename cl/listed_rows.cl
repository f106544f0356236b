// rows_before(list, n, row): the number of rows below `row` in a list of n ascending rows.
ulong rows_before(global const I *list, const ulong n, const ulong row)
{
    ulong low = 0, high = n;
    while (low < high) {
        const ulong middle = low + (high - low) / 2;
        if ((ulong)list[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
