<%doc>
C = A @ B of small matrices, from row pointers to values. The patterns of B and of C are in local memory, a bit for each place: a
row of C is the union of the rows of B that the row of A names, word by word. A scan over the words counts the entries of C, and
gives their positions. A work-item sums the products of an entry of C: it goes through the row of A, and the bits of B's pattern
give the factor's position in B.

A work-group finds the whole pattern of C for itself, so that no work-group waits for another, and makes its share of the entries.

Source        this project; counting entries by bits is Liu and Vinter's remark on dense rows, An Efficient GPU General SpGEMM
Index space   any number of work-groups
Inputs        n_rows: of C; n_inner: rows of B; n_words: words of 32 columns to a row; n_rows * n_words and n_inner * n_words at
              most `words`; B's rows sorted and without duplicates; A's may be in any order
Outputs       c_indptr, c_indices and c_data: with room for all entries of C, which c_indptr[n_rows] tells
Local memory  `4 * words` words and one for each work-item
Result        deterministic: products of a column are added in the order of A's row
</%doc>
#define LISTED 0
#define PATTERN_WORDS ${words}
#define PATTERN_LANES ${lanes}
#include "spgemm.cl"
#include "pattern_bits.cl"

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const uint n_rows, const uint n_inner, const uint n_words, SPGEMM_STRUCTURE
    global const A_VALUE *restrict a_data, global const X_VALUE *restrict b_data,
    global C_INDEX *restrict c_indptr, global C_INDEX *restrict c_indices, global T *restrict c_data)
{
    local uint b_bits[${words}], b_first[${words}], c_bits[${words}], c_first[${words + 1}], box[${work_group}];
    const uint me = get_local_id(0), all_words = n_rows * n_words;
    put_pattern(b_bits, b_first, b_indptr, b_indices, n_inner, n_words);
    for (uint i = me; i < all_words; i += ${work_group}) {
        const uint row = i / n_words, word = i - row * n_words;
        const I end = a_indptr[row + 1];
        uint bits = 0;
        for (I a = a_indptr[row]; a < end; ++a)
            bits |= b_bits[(uint)a_indices[a] * n_words + word];
        c_bits[i] = bits;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    scan_words(c_bits, c_first, box, all_words);
    if (get_group_id(0) == 0)
        for (uint row = me; row <= n_rows; row += ${work_group})
            c_indptr[row] = (C_INDEX)c_first[row * n_words];
    const uint nnz = c_first[all_words];
    for (uint c = get_global_id(0); c < nnz; c += get_global_size(0)) {
        const uint i = word_with(c_first, all_words, c), row = i / n_words, word = i - row * n_words;
        const uint column = column_of(c_bits[i], c - c_first[i]);
        const I end = a_indptr[row + 1];
        T sum = ZERO;
        for (I a = a_indptr[row]; a < end; ++a) {
            const uint at = (uint)a_indices[a] * n_words + word, bits = b_bits[at];
            if (bits >> column & 1)
                sum = ADD(sum, MULTIPLY(from_a(a_data[a]), from_x(b_data[place_in(bits, b_first[at], column)])));
        }
        c_indices[c] = (C_INDEX)(32 * word + column);
        c_data[c] = sum;
    }
}
