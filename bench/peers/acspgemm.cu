// AC-SpGEMM's product of two matrices in CSR form (https://github.com/GPUPeople/ACSpGEMM), for float64 and float32.
#include "cuda_codes.cuh"

#include "source/device/Multiply.cu"
#include "source/device/memory.cpp"
#include "source/CSR.cpp"
#include "source/dCSR.cpp"

namespace {

template <typename Value> const char *multiply(const Csr *A, const Csr *B, Csr *C) {
    return peer::guarded([&] {
        peer::choose_allocator(C->pooled);
        peer::Operand<dCSR<Value>> left(A), right(B);
        dCSR<Value> result;
        ExecutionStats stats;
        stats.measure_all = false;
        const GPUMatrixMatrixMultiplyTraits traits;
        // Of its own program: threads, blocks a multiprocessor, nonzeros, elements read and kept a thread, and limits of merges.
        ACSpGEMM::MultiplyImplementation<Value, 256, 3, 2, 4, 4, 16, 512, 8>(left, right, result, traits, stats);
        peer::hand_over(result, A, B, C);
    });
}

} // namespace

extern "C" const char *multiply_float64(const Csr *A, const Csr *B, Csr *C) { return multiply<double>(A, B, C); }
extern "C" const char *multiply_float32(const Csr *A, const Csr *B, Csr *C) { return multiply<float>(A, B, C); }
