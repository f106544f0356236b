// HSMU-SpGEMM's product of two matrices in CSR form (https://github.com/wuminqaq/HSMU-SpGEMM), for float64.
#include "cuda_codes.cuh"
#include <cstring>
#include <fstream>
#include <iostream>

// It tells the sizes of its masks at each call.
#define printf(...) 0
#include "src/NHC_spgemm.cuh"
#undef printf

namespace {

NHC_CSR operand(const Csr *matrix) {
    NHC_CSR result{};
    result.M = matrix->rows, result.N = matrix->columns, result.nnz = matrix->entries;
    result.d_ptr = matrix->indptr, result.d_col = matrix->indices, result.d_val = static_cast<double *>(matrix->data);
    return result;
}

} // namespace

extern "C" const char *multiply_float64(const Csr *A, const Csr *B, Csr *C) {
    return peer::guarded([&] {
        peer::choose_allocator(C->pooled);
        if (B->columns < threshold_value_selected)
            throw std::runtime_error("its code for fewer than 4096 columns needs the matrices on the host");
        NHC_CSR left = operand(A), right = operand(B), result{};
        result.M = A->rows, result.N = B->columns;
        compressed_bin bins{};
        NHC_bin partition{};
        // Neither its first nor its last repetition: those write files.
        const int iteration = 1;
        double times[iteration + 1], sums[2] = {};
        compressed_NHC_spgemm(iteration, times, &bins, &partition, &left, &right, &result, sums[0], sums[1]);
        realse_NHC_tile(&right);
        realse_NHC_tile(&result);
        realse_compressed_bin(&bins);
        free_bin(&partition);
        cudaFree(result.d_tem_ptr);
        delete[] result.rowPtr;
        C->rows = result.M, C->columns = result.N, C->entries = result.nnz;
        C->indptr = result.d_ptr, C->indices = result.d_col, C->data = result.d_val;
    });
}
