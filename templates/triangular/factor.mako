<%doc>
The incomplete factors of a matrix, in its own pattern. ILU: L, whose diagonal is 1, below the diagonal, and U on and above it.
IC: L alone, from the lower triangle of a Hermitian matrix. Schedules: "rows", "levels" and "sync_free" eliminate exactly, a row
after the rows that it needs; "sync_free" as triangular/sync_free_levels finds levels: by tickets, each entry its own flag, and by
bounded waiting; "sweep" computes each entry from the entries of the sweep before, so that all are computed at the same time;
"guess" makes the entries before the first sweep: those of the matrix, scaled by its diagonal.

Source        Saad, "Iterative Methods for Sparse Linear Systems", 10.3: elimination; Chow and Patel, "Fine-grained parallel
              incomplete LU factorization": sweeps; of "sync_free": see triangular/sync_free_levels
Index space   "rows": one work-item; "levels": of several levels one work-group, of one level any number, work-items stride over
              its rows; "sync_free": a work-item to a row; "guess", "sweep": work-items that stride over the rows, or take
              adjacent ones: `spread` says which
Inputs        indptr, indices: of n rows, canonical; values: of the matrix; "levels": order: rows by level; starts: where each
              level begins in it, with the end; levels first up to last - 1; "sweep": before: of the factors
Output        factors: all rows, or those of the levels; "sweep": after: of the factors. "sync_free": factors all 0 before, a
              computed 0 may be -0; state, all 0 before: STARVED: 1 if the launch gave up; TICKET: work-groups that have begun
Local memory  none; "sync_free": sizeof(int), of one work-item, which is the plain kernel, none
Result        deterministic: "rows", "levels" and "sync_free" agree to rounding, as compilers may vectorise sums
</%doc>
<%namespace name="flags" file="triangular/sync_free"/>\
<%
    known, result = {"sweep": ("before", "after"), "guess": ("values", "factors")}.get(schedule, ("factors", "factors"))
    # Exact elimination subtracts each entry's square from the diagonal at once: an entry is not read again.
    sums_squares = hermitian and schedule not in ("sweep", "guess")
%>\
% if schedule == "sync_free":
#define STARVED 0
#define TICKET 1
${flags.define_words(word, parts, item_bytes)}\
T read(volatile global ${word} *known, const I at, bool *waits)
{
    const ${words} entry = LOAD(known + (ulong)at * ${parts});
    *waits = *waits || !IS_KNOWN(entry);
    return T_FROM_BITS(entry);
}
#define KNOWN(at) read(known, at, &waits)
% else:
#define KNOWN(at) ${known}[at]
% endif
#if ${1 if not hermitian else 0}
// Returns the place of a column among those of a row, -1 if it is not there.
I find(global const I *restrict indices, I begin, I end, const I column)
{
    while (begin < end) {
        const I middle = begin + (end - begin) / 2;
        if (indices[middle] < column)
            begin = middle + 1;
        else if (indices[middle] > column)
            end = middle;
        else
            return middle;
    }
    return -1;
}
#endif

<%def name="compute_entry()">\
                const I column = indices[k], first_of_column = indptr[column], last_of_column = indptr[column + 1];
                T sum = values[k];
% if hermitian and schedule == "guess":
                const T root = of_real(sqrt(magnitude(values[last_of_column - 1])));
                sum = column == row ? root : quotient(sum, root);
% elif hermitian:
                // The diagonal entry is the last entry of a row of the lower triangle.
                const T under = column == row ? of_real(1) : KNOWN(last_of_column - 1);
${leave_if_waiting()}\
                I at = first_of_column;
                for (I m = begin; m < ${"(column == row ? begin : k)" if sums_squares else "k"}; ++m) {
                    const I inner = indices[m];
                    while (at < last_of_column && indices[at] < inner)
                        ++at;
                    if (at < last_of_column && indices[at] == inner)
                        sum -= times(KNOWN(m), conjugate(KNOWN(at)));
                }
                sum = column == row ? of_real(sqrt(real_part(${"rest" if sums_squares else "sum"}))) : quotient(sum, under);
% else:
                const T under = column < row ? KNOWN(find(indices, first_of_column, last_of_column, column)) : of_real(1);
${leave_if_waiting()}\
%     if schedule != "guess":
                for (I m = begin; m < end && indices[m] < min(row, column); ++m) {
                    const I inner = indices[m], at = find(indices, indptr[inner], indptr[inner + 1], column);
                    if (at >= 0)
                        sum -= times(KNOWN(m), KNOWN(at));
                }
%     endif
                if (column < row)
                    sum = quotient(sum, under);
% endif
</%def>\
<%def name="leave_if_waiting()">\
% if schedule == "sync_free":
                if (waits)
                    break;
% endif
</%def>\
<%def name="factor_row()">\
            const I begin = indptr[row], end = indptr[row + 1];
% if sums_squares:
            T rest = values[end - 1];
% endif
            for (I k = begin; k < end; ++k) {
${compute_entry()}\
                ${result}[k] = sum;
% if sums_squares:
                rest -= times(sum, conjugate(sum));
% endif
            }
</%def>\
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
% if schedule == "levels":
    const uint first, const uint last, global const int *restrict starts, global const int *restrict order,
% elif schedule == "sync_free":
    const ulong n, const uint max_polls,
% else:
    const ulong n, const ulong stride, const ulong step, const ulong span,
% endif
    global const I *restrict indptr, global const I *restrict indices, global const T *restrict values,
% if schedule == "sweep":
    global const T *restrict before, global T *restrict after)
% elif schedule == "sync_free":
    global T *factors, volatile global int *state)
% else:
    global T *factors)
% endif
{
% if schedule == "levels":
    for (uint level = first; level < last; ++level) {
        const ulong begin_of_level = starts[level], end_of_level = starts[level + 1];
%     if work_group == 1:
        // A work-item is a core's loop: it takes neighbouring rows.
        const ulong span = (end_of_level - begin_of_level + get_num_groups(0) - 1) / get_num_groups(0);
        const ulong first_row = begin_of_level + get_group_id(0) * span;
        for (ulong i = first_row; i < min(first_row + span, end_of_level); ++i) {
%     else:
        for (ulong i = begin_of_level + get_global_id(0); i < end_of_level; i += get_global_size(0)) {
%     endif
            const I row = order[i];
${factor_row()}\
        }
%     if work_group > 1:
        barrier(CLK_GLOBAL_MEM_FENCE);
%     endif
    }
% elif schedule == "sync_free":
%     if work_group == 1:
    const int ticket = state[STARVED] ? -1 : atomic_inc(state + TICKET);
%     else:
    local int first_ticket;
    if (get_local_id(0) == 0)
        first_ticket = state[STARVED] ? -1 : atomic_inc(state + TICKET);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int ticket = first_ticket;
%     endif
    const ulong place = (ulong)ticket * ${work_group} + get_local_id(0);
    if (ticket < 0 || place >= n)
        return;
    const I row = (I)place, begin = indptr[row], end = indptr[row + 1];
    volatile global ${word} *known = (volatile global ${word} *)factors;
%     if sums_squares:
    T rest = values[end - 1];
%     endif
    I k = begin;
    uint polls = 0;  // turns since the work-item last computed an entry
    // The condition reads memory, so that no compiler moves the stores behind the loop, where others would wait for them.
    for (; (k < end || !IS_KNOWN(LOAD(known + (ulong)(end - 1) * ${parts}))) && polls < max_polls; ++polls) {
        bool waits = false;
        for (; k < end; ++k) {
${compute_entry()}\
${leave_if_waiting()}\
            STORE(known + (ulong)k * ${parts}, as_${words}(sum));
%     if sums_squares:
            rest -= times(sum, conjugate(sum));
%     endif
            polls = 0;
        }
    }
    if (k < end)
        atomic_or(state + STARVED, 1);
% else:
    const ulong first_row = get_global_id(0) * stride, last_row = min(n, first_row + span);
    for (ulong place = first_row; place < last_row; place += step) {
        const I row = (I)place;
${factor_row()}\
    }
% endif
}
