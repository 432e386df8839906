"""The machine and its files: device, cores, processes, cache, progress. Nothing here knows of translation."""
