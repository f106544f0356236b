// spECK's product of two matrices in CSR form (https://github.com/GPUPeople/spECK), for float64 and float32.
#include "cuda_codes.cuh"

#include "source/GPU/Multiply.cu"
#include "source/GPU/memory.cpp"
#include "source/dCSR.cpp"

namespace {

// Blocks of a multiprocessor and threads of a block are those of its own program; shared memory is the device's, as it asks for.
const int BLOCKS = 4, THREADS = 1024, STATIC_SHARED = 48 << 10;

template <typename Value> const char *multiply(const Csr *A, const Csr *B, Csr *C) {
    return peer::guarded([&] {
        peer::choose_allocator(C->pooled);
        static auto config = spECK::spECKConfig::initialize(0);
        Timings timings;
        peer::Operand<dCSR<Value>> left(A), right(B);
        dCSR<Value> result;
        spECK::MultiplyspECK<Value, BLOCKS, THREADS, DYNAMIC_SHARED, STATIC_SHARED>(left, right, result, config, timings);
        peer::hand_over(result, A, B, C);
    });
}

} // namespace

extern "C" const char *multiply_float64(const Csr *A, const Csr *B, Csr *C) { return multiply<double>(A, B, C); }
extern "C" const char *multiply_float32(const Csr *A, const Csr *B, Csr *C) { return multiply<float>(A, B, C); }
