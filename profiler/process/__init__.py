"""How processes of the program are started and ended, and what numba may read in them."""
