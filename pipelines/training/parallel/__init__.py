"""Training one net with several workers, over torch.distributed: gloo on processors, NCCL where GPUs are.

Four methods: `synchronous` (gradients are averaged each step), `pipelined` (each worker has some of the layers),
`asynchronous` (a parameter server, stale gradients) and `consensus` (ADMM). `launch` starts the workers with torchrun
and follows them; `python -m pipelines.training.parallel` is a worker.
"""
