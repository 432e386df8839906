"""What text is: characters and their normal form. It knows no corpus and no model."""
