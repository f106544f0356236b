"""Files of sparse arrays, under the names of `scipy.io`: read and written on the host, by SciPy.

Examples
--------
>>> import pathlib, tempfile
>>> import clsparse_py as sp
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder) / "a.mtx"
...     sp.io.mmwrite(path, sp.csr_array([[1, 0], [0, 2]]))
...     sp.io.mmread(path).toarray()
array([[1, 0],
       [0, 2]])
"""

from clsparse_py._arrays.matrix_market import mminfo, mmread, mmwrite

__all__ = ["mminfo", "mmread", "mmwrite"]
