"""Budget lines of more samples than memory holds: by DuckDB, and by Dask over partitions."""
