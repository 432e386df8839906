"""A model on disk: recipe, subwords and weights in a folder, a zip or a repository of the hub."""
