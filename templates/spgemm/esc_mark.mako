<%doc>
Which of a slice's sorted products begin an entry of C: those whose key is not that of the one before.

Source        Dalton, Olson and Bell, Section 3.4
Index space   a work-item to a product
Local memory  none
Output        marks: 1 or 0; `numbered`: numbers, the products' numbers, bit 31 set where an entry begins
Inputs        n sorted keys
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const uint n, global const KEY *restrict keys, ${"global uint *restrict numbers, " if numbered else ""}global uchar *restrict marks)
{
    const uint i = get_global_id(0);
    if (i >= n)
        return;
    const bool begins = i == 0 || keys[i] != keys[i - 1];
    marks[i] = begins;
% if numbered:
    if (begins)
        numbers[i] |= 1u << 31;
% endif
}
