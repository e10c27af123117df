"""Healthy trainings have no errors or warnings."""

import pytest

from tests.proof.healthy_models import HEALTHY, MAX_REMARKS


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_has_at_most_two_remarks(name: str) -> None:
    findings = HEALTHY[name]().findings
    assert [finding for finding in findings if finding.severity != "remark"] == []
    assert len(findings) <= MAX_REMARKS
