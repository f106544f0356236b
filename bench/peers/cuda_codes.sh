#!/bin/sh
# Clone the CUDA codes that cuda_codes.py calls, mend them for CUDA 13, and build a library of each, for an NVIDIA H100 or H200:
#     cuda_codes.sh SOURCES LIBRARIES
# For another device ARCHITECTURE is its compute capability, SHARED its bytes of shared memory for a block that asks for most, and
# MULTIPROCESSORS their number. NVCC_FLAGS are more options of the compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" "$2"
sources=$(cd "$1" && pwd) libraries=$(cd "$2" && pwd)
architecture=${ARCHITECTURE:-90}

fetch() { # name, repository, commit
    [ -d "$sources/$1" ] || git clone -q "https://github.com/$2" "$sources/$1"
    git -C "$sources/$1" checkout -q -f "$3"
    commit=$3
    cd "$sources/$1"
}

build() { # name, and what the compiler is given besides
    name=$1
    shift
    # Several libraries are loaded at once, and share templates by name: each has variables of its own.
    # shellcheck disable=SC2086
    nvcc -std=c++17 -O3 -w -shared -Xcompiler -fPIC,-fno-gnu-unique -cudart static --compress-mode=size \
        -gencode "arch=compute_$architecture,code=sm_$architecture" --expt-extended-lambda --expt-relaxed-constexpr \
        -DCOMMIT="\"$commit\"" "$@" ${NVCC_FLAGS:-} -I "$here" "$here/$name.cu" -o "$libraries/lib$name.so"
    strip "$libraries/lib$name.so"
}

# Of CUB: a header that is gone. Of each code: instantiations of templates that are not called.
fetch speck GPUPeople/spECK 2f84623087d536b5ae6e71d08db754941f60667a
sed -i '/transform_input_iterator/d' include/GPU/HelperFunctions.cuh
sed -i '/^template void MultiplyspECK</d' source/GPU/Multiply.cu
build speck -use_fast_math -DDYNAMIC_SHARED="${SHARED:-232448}" -I include -I . source/CSR.cpp

fetch opsparse lorentzbf/OpSparse 0134b0c5b4e20cde1956850aa22b8793ae9c14e8
cd OpSparse
# Its program's check of the result, which is never called.
sed -i '/cusparse_spgemm.h/d' src/opsparse.cu
build opsparse -I inc -I .

fetch acspgemm GPUPeople/ACSpGEMM 130832e0386735da4e6b75258e4ef59d7158b645
sed -i '/transform_input_iterator/d' include/device/HelperFunctions.cuh
# Leading zeros of 32 bits, as where it was written: a shift by those of 64 is undefined.
sed -i '/^\ttemplate\tvoid Multiply</d; s/__builtin_clzll/__builtin_clz/' source/device/Multiply.cu
build acspgemm -use_fast_math -I include -I .

fetch hsmu wuminqaq/HSMU-SpGEMM 6d1a942ef9498ee7a4748c989524cab9b014fbd0
sed -i "s/#define num_of_SM 84/#define num_of_SM ${MULTIPROCESSORS:-132}/" inc/NHC_spgemm.h
build hsmu -I .

fetch dasp SuperScientificSoftwareLaboratory/DASP 8ce8363599464c92b141366dd2d87014fc266bea
# In place of the products that it times: one, which is recorded.
sed -i 's/int warmup_time = 100;/int warmup_time = 0;/; s/int execute_time = 1000;/int execute_time = record();/' src/dasp_f64.h
build dasp --default-stream per-thread -Df64 -I .
