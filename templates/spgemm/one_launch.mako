<%doc>
C = A @ B of small matrices, from row pointers to values. The patterns of B and of C are in local memory, a bit for each place: a row
of C is the union of the rows of B that the row of A names, word by word. A scan over the words counts the entries of C, and so
tells where each goes. A work-item sums the products of an entry: it goes through the row of A, and the bits tell which entry of B
belongs to it.

Each work-group finds the whole pattern of C for itself, so that none waits for another, and makes its share of the entries.

Source        this project; counting entries by bits is Liu and Vinter's remark on dense rows, An Efficient GPU General SpGEMM
Index space   any number of work-groups
Inputs        n_rows: of C; n_inner: rows of B; n_words: words of 32 columns to a row; n_rows * n_words and n_inner * n_words at most
              `words`; B's rows sorted and without duplicates; A's may be in any order
Outputs       c_indptr, c_indices and c_data: with room for all entries of C, which c_indptr[n_rows] tells
Local memory  `4 * words` words and one for each work-item
Result        deterministic: products of a column are added in the order of A's row
</%doc>
#include "spgemm.cl"
#include "group_scan.cl"
#define SHARE ${-(-words // work_group)}

kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))
void ${name}(const uint n_rows, const uint n_inner, const uint n_words, SPGEMM_STRUCTURE
    global const A_VALUE *restrict a_data, global const X_VALUE *restrict b_data,
    global C_INDEX *restrict c_indptr, global C_INDEX *restrict c_indices, global T *restrict c_data)
{
    // Bits of B and of C; the entry that is the first of each word.
    local uint b_bits[${words}], b_first[${words}], c_bits[${words}], c_first[${words + 1}], box[${work_group}];
    const uint me = get_local_id(0), of_b = n_inner * n_words, of_c = n_rows * n_words;
    for (uint i = me; i < of_b; i += ${work_group})
        b_bits[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = me / ${lanes}; k < n_inner; k += ${work_group // lanes}) {
        const I begin = b_indptr[k], end = b_indptr[k + 1];
        for (I b = begin + (I)(me % ${lanes}); b < end; b += ${lanes}) {
            const uint column = (uint)b_indices[b], word = k * n_words + column / 32;
            atomic_or(&b_bits[word], 1u << column % 32);
            if (b == begin || (uint)b_indices[b - 1] / 32 != column / 32)
                b_first[word] = (uint)b;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < of_c; i += ${work_group}) {
        const uint row = i / n_words, word = i - row * n_words;
        const I end = a_indptr[row + 1];
        uint bits = 0;
        for (I a = a_indptr[row]; a < end; ++a)
            bits |= b_bits[(uint)a_indices[a] * n_words + word];
        c_bits[i] = bits;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint begin = min(me * SHARE, of_c), end = min(begin + SHARE, of_c);
    uint count = 0;
    for (uint i = begin; i < end; ++i)
        count += popcount(c_bits[i]);
    uint before = group_scan_add(box, count);
    for (uint i = begin; i < end; ++i) {
        c_first[i] = before;
        before += popcount(c_bits[i]);
    }
    if (me == ${work_group - 1})
        c_first[of_c] = before;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_group_id(0) == 0)
        for (uint row = me; row <= n_rows; row += ${work_group})
            c_indptr[row] = (C_INDEX)c_first[row * n_words];
    const uint nnz = c_first[of_c];
    for (uint c = get_global_id(0); c < nnz; c += get_global_size(0)) {
        // The word of the entry.
        uint low = 0, high = of_c;
        while (high - low > 1) {
            const uint middle = (low + high) / 2;
            if (c_first[middle] <= c)
                low = middle;
            else
                high = middle;
        }
        // Its bit: halves of the word that come before it are left out.
        uint left = c - c_first[low], bits = c_bits[low], column = 0;
        for (uint half_width = 16; half_width; half_width /= 2) {
            const uint first_half = popcount(bits & ((1u << half_width) - 1));
            if (left >= first_half) {
                left -= first_half;
                bits >>= half_width;
                column += half_width;
            }
        }
        const uint row = low / n_words, word = low - row * n_words;
        const I end_of_a = a_indptr[row + 1];
        T sum = ZERO;
        for (I a = a_indptr[row]; a < end_of_a; ++a) {
            const uint at = (uint)a_indices[a] * n_words + word, there = b_bits[at];
            if (there >> column & 1)
                sum = ADD(sum, MULTIPLY(from_a(a_data[a]), from_x(b_data[b_first[at] + popcount(there & ((1u << column) - 1))])));
        }
        c_indices[c] = (C_INDEX)(32 * word + column);
        c_data[c] = sum;
    }
}
