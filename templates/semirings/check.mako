<%doc>
Addition and multiplication of a semiring for one pair of values: a test whether its expressions compile.

Source        own
Index space   any
Inputs        a and b
Local memory  none
Result        a and b multiplied, added to a
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(global const A_VALUE *restrict a, global const X_VALUE *restrict b, global T *restrict result)
{
    *result = ADD(from_a(*a), MULTIPLY(from_a(*a), from_x(*b)));
}
