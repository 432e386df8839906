"""Translation over HTTP: a page to type into, and an API compatible with LibreTranslate."""
