"""Access control of a name server: who may register brokers, and who may change anything else."""
