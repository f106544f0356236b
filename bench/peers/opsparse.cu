// OpSparse's product of two matrices in CSR form (https://github.com/lorentzbf/OpSparse), for float64.
#include "cuda_codes.cuh"

// Its program is a function here, without its check by cuSPARSE.
#define main opsparse_main
#include "src/CSR.cu"
#include "src/Meta.cu"
#include "src/Timings.cu"
#include "src/opsparse.cu"
#undef main

namespace {

// An operand that this does not own.
struct Operand : CSR {
    explicit Operand(const Csr *matrix) {
        M = matrix->rows, N = matrix->columns, nnz = matrix->entries;
        d_rpt = matrix->indptr, d_col = matrix->indices, d_val = static_cast<double *>(matrix->data);
    }
    ~Operand() { d_rpt = d_col = nullptr, d_val = nullptr; }
};

} // namespace

extern "C" const char *multiply_float64(const Csr *A, const Csr *B, Csr *C) {
    return peer::guarded([&] {
        peer::choose_allocator(C->pooled);
        // Static, and so zero at first: its constructor sets nothing.
        static Meta meta;
        Timings timings;
        Operand left(A), right(B);
        CSR result;
        opsparse(left, right, result, meta, timings);
        peer::check(cudaGetLastError());
        C->rows = result.M, C->columns = result.N, C->entries = result.nnz;
        C->indptr = result.d_rpt, C->indices = result.d_col, C->data = result.d_val;
        result.d_rpt = result.d_col = nullptr, result.d_val = nullptr;
    });
}
