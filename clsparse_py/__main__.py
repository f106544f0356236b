"""``python -m clsparse_py`` is ``clsparse``."""

from clsparse_py.cli import main

raise SystemExit(main())
