"""`nmt plot`: what is to be shown, as a picture or as a page to explore."""
