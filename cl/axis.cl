// The index along one axis for each place (r, c) of an index matrix: read from a list, or evenly spaced.
//
// AXIS(name):          the kernel parameters that give the indices along one axis, for all places of the index matrix.
// AXIS_AT(name, r, c): the index along the axis at place (r, c).
#define AXIS(NAME) const uint NAME##_listed, const long NAME##_begin, const long NAME##_by_row, const long NAME##_by_column, \
    global const I *restrict NAME##_list
#define AXIS_AT(NAME, R, C) axis_position(NAME##_listed, NAME##_begin + NAME##_by_row * (R) + NAME##_by_column * (C), NAME##_list)
I axis_position(const uint is_listed, const long at, global const I *list)
{
    return is_listed ? list[at] : (I)at;
}
