"""What recording costs, as ratios to a plain pass in the same run."""
