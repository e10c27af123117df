"""The fault of each sick training is found at its place, and healthy trainings have no errors or warnings."""

import pytest

from tests.proof.healthy_models import HEALTHY, MAX_REMARKS
from tests.proof.sick_trainings import SICK, is_found
from tests.requirements import needs_saved_tensors


@needs_saved_tensors
@pytest.mark.parametrize("name", SICK)
def test_the_fault_of_a_sick_training_is_found(name: str) -> None:
    record, fault = SICK[name]
    trace = record()
    assert len(trace._data.roots) <= 10
    assert is_found(trace, fault), str(trace.findings)


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_has_at_most_two_remarks(name: str) -> None:
    findings = HEALTHY[name]().findings
    assert [finding for finding in findings if finding.severity != "remark"] == []
    assert len(findings) <= MAX_REMARKS
