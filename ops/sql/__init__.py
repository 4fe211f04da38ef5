"""SQL over the Delta tables of the promoted generation: DuckDB in a process of its own, which can only read them."""
