// What the libraries of CUDA codes share: matrices as the benchmark passes them, errors as text, and an allocator that may be a
// pool.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <cuda_runtime.h>
#include <cub/cub.cuh>
#include <cuda/functional>
#include <thrust/extrema.h>
#include <thrust/scan.h>

#if CUB_MAJOR_VERSION >= 3
// What CUB no longer has.
namespace cub {
using Max = cuda::maximum<>;
using Min = cuda::minimum<>;
} // namespace cub
#endif

// A matrix in CSR form on the device, its values of the dtype that the function's name says; of a result, who allocated it.
struct Csr {
    int rows, columns, entries, pooled;
    int *indptr, *indices;
    void *data;
};

namespace peer {

// Whether memory comes from CUDA's pool of the device, which then keeps what is freed.
inline bool pooled = false;

template <typename T> cudaError_t allocate(T **pointer, size_t bytes) {
    void **target = reinterpret_cast<void **>(pointer);
    return pooled ? cudaMallocAsync(target, bytes, 0) : cudaMalloc(target, bytes);
}

inline cudaError_t release(void *pointer) {
    if (pooled && pointer) {
        if (cudaFreeAsync(pointer, 0) == cudaSuccess)
            return cudaSuccess;
        // Some codes keep memory from one call to the next: it may be none of the pool's.
        cudaGetLastError();
    }
    return cudaFree(pointer);
}

inline void check(cudaError_t status) {
    if (status != cudaSuccess)
        throw std::runtime_error(cudaGetErrorString(status));
}

// Choose the allocator; there must be a device.
inline void choose_allocator(bool pool) {
    int device;
    check(cudaGetDevice(&device));
    if (pool && !pooled) {
        cudaMemPool_t of_device;
        check(cudaDeviceGetDefaultMemPool(&of_device, device));
        uint64_t keep = UINT64_MAX;
        check(cudaMemPoolSetAttribute(of_device, cudaMemPoolAttrReleaseThreshold, &keep));
    }
    pooled = pool;
}

// Run a function, and return what went wrong as text that stays until the next call, or null.
template <typename Function> const char *guarded(Function function) {
    static std::string text;
    try {
        function();
        check(cudaGetLastError());
        return nullptr;
    } catch (const std::exception &error) {
        // The codes' own errors have no text.
        cudaError_t status = cudaGetLastError();
        text = status == cudaSuccess ? error.what() : cudaGetErrorString(status);
        return text.c_str();
    }
}

// An operand of spECK or AC-SpGEMM, which name the parts of a matrix alike; it does not own its memory.
template <typename Matrix> struct Operand : Matrix {
    explicit Operand(const Csr *A) {
        this->rows = A->rows, this->cols = A->columns, this->nnz = A->entries;
        this->row_offsets = reinterpret_cast<unsigned *>(A->indptr), this->col_ids = reinterpret_cast<unsigned *>(A->indices);
        this->data = static_cast<decltype(this->data)>(A->data);
    }
    ~Operand() { this->row_offsets = this->col_ids = nullptr, this->data = nullptr; }
};

// Hand over the memory of a result of theirs.
template <typename Matrix> void hand_over(Matrix &result, const Csr *A, const Csr *B, Csr *C) {
    C->rows = A->rows, C->columns = B->columns, C->entries = int(result.nnz);
    C->indptr = reinterpret_cast<int *>(result.row_offsets), C->indices = reinterpret_cast<int *>(result.col_ids);
    C->data = result.data;
    result.row_offsets = result.col_ids = nullptr, result.data = nullptr;
}

} // namespace peer

extern "C" const char *release(const Csr *C) {
    return peer::guarded([&] {
        peer::choose_allocator(C->pooled);
        for (void *array : {static_cast<void *>(C->indptr), static_cast<void *>(C->indices), C->data})
            peer::check(peer::release(array));
    });
}

extern "C" const char *commit() { return COMMIT; }

// The code that is included after this allocates by these.
#define cudaMalloc peer::allocate
#define cudaFree peer::release
