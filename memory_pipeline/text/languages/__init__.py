"""Which language a text is in, and the words by which it shows what it says: one file for each language."""
