"""Module calls: their hooks, arguments and outputs, and the names and owners that follow from them."""
