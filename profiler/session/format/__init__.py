"""How a session lies in its SQLite file: the tables, and how values and arrays are stored in them."""
