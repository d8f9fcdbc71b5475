"""The mixers, the nets around them and their training, written down in PyTorch as plainly as the specs state them:
loops over time, dense matrices, gradients by autograd. Slow, for checking alone; used by ../loop.py."""
