// Functions of complex numbers: pairs T of two REAL, with NumPy's branch cuts.
//
// complex_inverse(z) is 1 / z, complex_power(a, b) a to the power b, and complex_sign(z) z over its absolute value, or 0.
// complex_sqrt, complex_sin, complex_sinh, complex_tan, complex_tanh, complex_expm1, complex_log1p: functions of one number.
// complex_asin, complex_asinh, complex_atan, complex_atanh: the inverse functions of sin, sinh, tan and tanh.
//
// Source: Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit".
// Source of complex_inverse: Smith, "Algorithm 116: complex division".
// sin, tan, asin and atan of z are sinh, tanh, asinh and atanh of i z, divided by i.
#ifndef REAL
    #error "complex_functions.cl needs REAL: the type of the parts of T"
#endif

T complex_inverse(const T z)
{
    if (fabs(z.x) >= fabs(z.y)) {
        const REAL ratio = z.y / z.x, scale = 1 / (z.x + z.y * ratio);
        return z.x == 0 && z.y == 0 ? (T)(1 / fabs(z.x), z.y / fabs(z.x)) : (T)(scale, -ratio * scale);
    }
    const REAL ratio = z.x / z.y, scale = 1 / (z.y + z.x * ratio);
    return (T)(ratio * scale, -scale);
}

T complex_product(const T a, const T b)
{
    return (T)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

T complex_power(const T a, const T b)
{
    if (b.x == 0 && b.y == 0)
        return (T)(1, 0);
    if (a.x == 0 && a.y == 0)
        return b.x > 0 && b.y == 0 ? (T)(0, 0) : (T)(NAN, NAN);
    if (b.y == 0 && b.x == rint(b.x) && fabs(b.x) < 100) {
        T found = (T)(1, 0), square = a;
        for (uint exponent = (uint)fabs(b.x); exponent; exponent >>= 1) {
            if (exponent & 1)
                found = complex_product(found, square);
            square = complex_product(square, square);
        }
        return b.x < 0 ? complex_inverse(found) : found;
    }
    const REAL logarithm = log(hypot(a.x, a.y)), angle = atan2(a.y, a.x);
    const REAL size = exp(b.x * logarithm - b.y * angle), turn = b.y * logarithm + b.x * angle;
    return (T)(size * cos(turn), size * sin(turn));
}

T complex_sqrt(const T z)
{
    if (isinf(z.y))
        return (T)(INFINITY, z.y);
    if (isinf(z.x))
        return z.x > 0 ? (T)(z.x, isnan(z.y) ? z.y : copysign((REAL)0, z.y))
                       : (T)(isnan(z.y) ? z.y : (REAL)0, copysign((REAL)INFINITY, z.y));
    if (z.x == 0 && z.y == 0)
        return (T)(0, z.y);
    // sqrt((|x| + |z|) / 2) with z = x + i y: |x| and |z| are halved before they are added, so that their sum stays finite.
    const REAL root = sqrt(fabs(z.x) / 2 + hypot(z.x / 2, z.y / 2));
    const REAL other = fabs(z.y) / (2 * root);
    return z.x >= 0 ? (T)(root, copysign(other, z.y)) : (T)(other, copysign(root, z.y));
}

T complex_sinh(const T z)
{
    if (z.y == 0)
        return (T)(sinh(z.x), z.y);
    if (z.x == 0)
        return (T)(z.x, sin(z.y));
    if (fabs(z.x) > (sizeof(REAL) == 4 ? 80 : 700)) {
        // exp(|x|) is computed as exp(|x| / 2) squared: exp, and sinh on some devices, overflow where sinh(x + i y) is finite.
        const REAL root = exp(fabs(z.x) / 2);
        return (T)(copysign(root, z.x) * (cos(z.y) / 2) * root, root * (sin(z.y) / 2) * root);
    }
    return (T)(sinh(z.x) * cos(z.y), cosh(z.x) * sin(z.y));
}

T complex_tanh(const T z)
{
    if (isfinite(z.x) && !isfinite(z.y))
        return (T)(NAN, NAN);
    if (fabs(z.x) > 22)
        return (T)(copysign((REAL)1, z.x), isfinite(z.y) ? 4 * sin(z.y) * cos(z.y) * exp(-2 * fabs(z.x)) : (REAL)0);
    const REAL t = tan(z.y), beta = 1 + t * t, s = sinh(z.x), rho = sqrt(1 + s * s), divisor = 1 + beta * s * s;
    return (T)(beta * rho * s / divisor, t / divisor);
}

T complex_asinh(const T z)
{
    // `below` is sqrt(1 - i z), and `above` sqrt(1 + i z): asinh(z) is asin(i z), divided by i.
    const T below = complex_sqrt((T)(1 + z.y, -z.x)), above = complex_sqrt((T)(1 - z.y, z.x));
    const REAL imaginary = above.x * below.x - above.y * below.y;
    return (T)(copysign(asinh(fabs(below.x * above.y - below.y * above.x)), z.x), atan2(z.y, imaginary));
}

T complex_atanh(const T z)
{
    if (isinf(z.x) || isinf(z.y))
        return (T)(copysign((REAL)0, z.x), isnan(z.y) ? z.y : atan2(copysign((REAL)1, z.y), (REAL)0));
    const REAL near = 1 - fabs(z.x), square = z.y * z.y;
    const REAL real = log1p(4 * fabs(z.x) / (near * near + square)) / 4;
    return (T)(copysign(real, z.x), atan2(2 * z.y, (1 - z.x) * (1 + z.x) - square) / 2);
}

T complex_sin(const T z)
{
    const T found = complex_sinh((T)(-z.y, z.x));
    return (T)(found.y, -found.x);
}

T complex_tan(const T z)
{
    const T found = complex_tanh((T)(-z.y, z.x));
    return (T)(found.y, -found.x);
}

T complex_asin(const T z)
{
    const T found = complex_asinh((T)(-z.y, z.x));
    return (T)(found.y, -found.x);
}

T complex_atan(const T z)
{
    const T found = complex_atanh((T)(-z.y, z.x));
    return (T)(found.y, -found.x);
}

T complex_expm1(const T z)
{
    const REAL half_sine = sin(z.y / 2);
    return (T)(expm1(z.x) * cos(z.y) - 2 * half_sine * half_sine, exp(z.x) * sin(z.y));
}

T complex_log1p(const T z)
{
    return (T)(log(hypot(1 + z.x, z.y)), atan2(z.y, 1 + z.x));
}

T complex_sign(const T z)
{
    const REAL size = hypot(z.x, z.y);
    return size == 0 ? (T)(0, 0) : z / size;
}
