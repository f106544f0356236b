"""``mpiexec -n 4 python -m clsparse_py.distributed demo``."""

from clsparse_py.distributed.demo import main

raise SystemExit(main())
