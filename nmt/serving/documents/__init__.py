"""Files of text: what is to be translated in them, and the same files with it translated."""
