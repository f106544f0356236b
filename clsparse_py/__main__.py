"""``python -m clsparse_py`` is ``clsparse``."""

from clsparse_command import main

raise SystemExit(main())
