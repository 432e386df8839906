"""Search on a CPU beside its matrix products, in C that is compiled for the processor it runs on."""
