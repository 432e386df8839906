"""C kernels for training and search on a CPU, compiled for the processor on first use, and the checks of their calls."""
