"""What became of gradients between the pass that wrote them and a step, as far as the rows of a trace prove it."""

from hookviz.analysis.findings.training.training_facts import TrainingFacts


def is_on_device(facts: TrainingFacts, written: int) -> bool:
    """Whether a gradient lay on a device when it was written: there, a write through ``.data`` is not noticed."""
    after = facts.trace.rows[written].after
    return isinstance(after, int) and facts.trace.values[after][2] != "cpu"
