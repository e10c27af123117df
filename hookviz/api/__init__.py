"""What a person holds and calls: traces that show themselves, comparisons, and files that become traces again."""
