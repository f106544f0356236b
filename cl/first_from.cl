// first_from(numbers, low, high, number): the first place from low to high - 1 of ascending numbers that is not before a number.
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
