"""Where measurements are kept: the journal while they are taken, Parquet afterwards."""
