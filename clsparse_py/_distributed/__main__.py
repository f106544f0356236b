"""``mpiexec -n 4 python -m clsparse_py.distributed demo``."""

from clsparse_py._distributed.demo import main

raise SystemExit(main())
