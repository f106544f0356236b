<%doc>
The columns of each row of B as bit masks: the numbers of the words of 64 columns that have entries, ascending, and a mask of 64
bits for each. Short rows have no masks.

Source        the bit masks of HSMU-SpGEMM's symbolic phase
Index space   any number of work-items, each with rows in strides, see launch.spread
Inputs        rows sorted, without duplicates
Output        words and masks of a row from indptr[row] on; what lies behind them is not written. n_words[row]: four times their
              number, plus 1 where the row has the columns of the row before, plus 2 where it has the columns after those
Local memory  none
Result        exact
</%doc>
kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(
    const ulong n_rows, const ulong stride, const ulong step, const ulong span,
    global const I *restrict indptr, global const I *restrict indices,
    global uint *restrict words, global ulong *restrict masks, global uint *restrict n_words)
{
    ulong rows_left = span;
    for (ulong row = get_global_id(0) * stride; row < n_rows && rows_left; row += step, --rows_left) {
        const ulong begin = indptr[row], end = indptr[row + 1], length = end - begin;
        // To spare a branch, the mask of a word of 64 columns is written again with each column that the row of B has there.
        ulong at = begin - 1, mask = 0;
        uint word = UINT_MAX;
        for (ulong k = length > ${few} ? begin : end; k < end; ++k) {
            const ulong column = (ulong)indices[k], bit = 1ul << (column & 63);
            const uint next = (uint)(column >> 6);
            mask = next == word ? mask | bit : bit;
            at += next != word;
            word = next;
            words[at] = word;
            masks[at] = mask;
        }
        uint relation = 0;
        if (row > 0 && length > 0 && begin - (ulong)indptr[row - 1] == length) {
            const I shift = indices[begin] - indices[begin - length];
            bool repeats = shift == 0 || shift == 1;
            for (ulong k = begin; repeats && k < end; ++k)
                repeats = indices[k] - indices[k - length] == shift;
            relation = repeats ? 1 + (uint)shift : 0;
        }
        n_words[row] = (uint)(at + 1 - begin) * 4 + relation;
    }
}
