"""What text is: characters and their normal form, and sentences. It knows no corpus and no model."""
