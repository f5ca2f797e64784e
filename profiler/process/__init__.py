"""How processes of the program are started, ended and told what numba may read."""
