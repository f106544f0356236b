<%doc>
The supernodes of a triangular matrix: adjacent rows, at most `rows` of them, each of which continues the one before.

Source        Ng and Peyton, "Block sparse Cholesky algorithms on advanced uniprocessor computers"
Index space   any; work-items stride over the rows
Inputs        continues: of each of n rows, see triangular/ends
Output        supernodes: of the row of a supernode that is solved first the number of rows; of others minus the distance to it
Local memory  none. Of one work-item it is the plain kernel
Result        exact
</%doc>
<%
    before, after = ("+", "-") if upper else ("-", "+")
%>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const I n, global const int *restrict continues, global int *supernodes)
{
    for (ulong item = get_global_id(0); item < (ulong)n; item += get_global_size(0)) {
        const I row = (I)item;
        I distance = 0;
        while (continues[row ${before} distance])
            ++distance;
        distance %= ${rows};
        int size = 1;
        if (distance == 0)
            while (size < ${rows} && ${"row >= size" if upper else "row + size < n"} && continues[row ${after} size])
                ++size;
        supernodes[row] = distance ? -(int)distance : size;
    }
}
