"""What follows from a recorded trace: findings, formulas, comparisons and questions."""
