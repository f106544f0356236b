// integer_power(a, b): a to the b-th power, b not negative, by multiplications that wrap around as the type T does.
T integer_power(T a, T b)
{
    T power = 1;
    for (; b != 0; b >>= 1) {
        if (b & 1)
            power *= a;
        a *= a;
    }
    return power;
}
