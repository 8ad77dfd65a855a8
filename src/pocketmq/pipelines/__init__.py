"""Jobs over whole topics and estates: `ingest`, `copy`, `health`, `fleet`.

Each is a function with typed parameters and a subcommand of `pocketmq pipeline`. What is heavy
(Spark, Arrow, numpy) is imported by the pipeline that needs it, not here.
"""
