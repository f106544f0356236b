// Sums over adjacent entries by one work-item; LOAD(source, i) is entry i as a T.
//
// range_sum(source, i, end)   the ADD of the entries from i up to end, by four sums side by side.
T range_sum(global const SOURCE *source, ulong i, const ulong end)
{
    T a = ZERO, b = ZERO, c = ZERO, d = ZERO;
    for (; i + 4 <= end; i += 4) {
        a = ADD(a, LOAD(source, i));
        b = ADD(b, LOAD(source, i + 1));
        c = ADD(c, LOAD(source, i + 2));
        d = ADD(d, LOAD(source, i + 3));
    }
    a = ADD(ADD(a, b), ADD(c, d));
    for (; i < end; ++i)
        a = ADD(a, LOAD(source, i));
    return a;
}
