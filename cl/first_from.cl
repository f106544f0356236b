// first_from(numbers, low, high, number): the first i in low to high - 1 with numbers[i] >= number; high if there is none.
// The array `numbers` that first_from searches has to ascend.
#ifndef FIRST_FROM
#define FIRST_FROM
I first_from(global const I *restrict numbers, I low, I high, const I number)
{
    while (low < high) {
        const I middle = low + (high - low) / 2;
        if (numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
#endif
