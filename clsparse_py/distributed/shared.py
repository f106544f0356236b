"""What all objects over ranks have in common."""

from __future__ import annotations

from clsparse_py.distributed.communicator import Communicator

__all__ = ["Distributed"]


class Distributed:
    """Base of the objects of which each rank has a part.

    Attributes
    ----------
    comm : Communicator
    """

    # NumPy's operators leave the operation to the object.
    __array_ufunc__ = None

    comm: Communicator
