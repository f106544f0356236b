"""Sparse matrices over many devices: rows divided among the processes of MPI, or among threads that drive a host's devices."""

from clsparse_py._distributed.communicator import Communicator, RankError
from clsparse_py._distributed.csr import csr_array
from clsparse_py._distributed.division import Division, by_entries, by_graph, by_rows
from clsparse_py._distributed.matrix_files import mmread
from clsparse_py._distributed.mpi import MpiCommunicator, world
from clsparse_py._distributed.petsc import petsc_mat
from clsparse_py._distributed.plans import SpgemmPlan, spgemm_plan
from clsparse_py._distributed.systems import by_blocks
from clsparse_py._distributed.team import Team, over
from clsparse_py._distributed.vectors import vector

__all__ = [
    "Communicator",
    "Division",
    "MpiCommunicator",
    "RankError",
    "SpgemmPlan",
    "Team",
    "by_blocks",
    "by_entries",
    "by_graph",
    "by_rows",
    "csr_array",
    "mmread",
    "over",
    "petsc_mat",
    "spgemm_plan",
    "vector",
    "world",
]

if __name__ == "__main__":  # mpiexec -n 4 python -m clsparse_py.distributed demo
    from clsparse_py._distributed.demo import main

    raise SystemExit(main())
