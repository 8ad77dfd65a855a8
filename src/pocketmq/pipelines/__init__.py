"""Jobs over whole topics and clusters: `ingest`, `copy`, `health`, `fleet`.

Each is a function with typed parameters and a subcommand of `pocketmq pipeline`. Heavy libraries
(Spark, Arrow, numpy) are imported by the pipeline that needs them, not here.
"""
