// AMGCL's solver as three functions of a shared library, for float64 and float32: conjugate gradients, preconditioned by smoothed
// aggregation with its default smoother (SPAI-0), on the cores that OpenMP is given.
#include <algorithm>
#include <sstream>
#include <string>
#include <tuple>

#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>

namespace {

template <typename Value> struct Hierarchy {
    using Backend = amgcl::backend::builtin<Value>;
    using Solver = amgcl::make_solver<
        amgcl::amg<Backend, amgcl::coarsening::smoothed_aggregation, amgcl::relaxation::spai0>, amgcl::solver::cg<Backend>>;

    static typename Solver::params with_tolerance(double tolerance) {
        typename Solver::params params;
        params.solver.tol = tolerance;
        return params;
    }

    Hierarchy(int n, const int *indptr, const int *indices, const Value *data, double tolerance)
        : solver(std::make_tuple(n, amgcl::make_iterator_range(indptr, indptr + n + 1),
                                 amgcl::make_iterator_range(indices, indices + indptr[n]),
                                 amgcl::make_iterator_range(data, data + indptr[n])),
                 with_tolerance(tolerance)) {}

    Solver solver;
};

} // namespace

#define FUNCTIONS(Value)                                                                                                            \
    extern "C" void *set_up_##Value(int n, const int *indptr, const int *indices, const Value *data, double tolerance) {            \
        return new Hierarchy<Value>(n, indptr, indices, data, tolerance);                                                           \
    }                                                                                                                               \
    extern "C" int solve_##Value(void *hierarchy, int n, const Value *b, Value *x) {                                                \
        std::fill(x, x + n, Value(0));                                                                                              \
        auto from = amgcl::make_iterator_range(b, b + n);                                                                           \
        auto to = amgcl::make_iterator_range(x, x + n);                                                                             \
        return int(std::get<0>(static_cast<Hierarchy<Value> *>(hierarchy)->solver(from, to)));                                      \
    }                                                                                                                               \
    extern "C" void describe_##Value(void *hierarchy, char *text, int n) {                                                          \
        std::ostringstream said;                                                                                                    \
        said << static_cast<Hierarchy<Value> *>(hierarchy)->solver.precond();                                                       \
        text[said.str().copy(text, n - 1)] = 0;                                                                                     \
    }                                                                                                                               \
    extern "C" void free_##Value(void *hierarchy) { delete static_cast<Hierarchy<Value> *>(hierarchy); }

FUNCTIONS(double)
FUNCTIONS(float)
