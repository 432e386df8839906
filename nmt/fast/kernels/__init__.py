"""C kernels for training and search on a CPU, compiled in wheels or else on first use, and the checks of their calls."""
