"""The editions of hookviz in other languages: the texts, the catalogue of translations, and the files made of it."""
