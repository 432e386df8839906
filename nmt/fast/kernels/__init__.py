"""C kernels for training and search on a CPU, compiled on first use, and the checks of their calls."""
