"""``StaticFinding``: one row of what ``doctor`` finds."""

from dataclasses import dataclass
from typing import Any

from hookviz.analysis.findings.hooks.explanations import EXPLANATIONS
from hookviz.static_checks.finding_texts import ADVICE, SENTENCES
from hookviz.support.messages import _, join_sentences


@dataclass(frozen=True)
class StaticFinding:
    """What one rule finds in a model or a hook function, without running it.

    - ``error``: certainly broken, such as a hook on a module that is never called.
    - ``warning``: a known mistake, such as an edit of a gradient in place.
    - ``remark``: worth knowing, and perhaps intended.
    """

    on: str
    """The name of the module, parameter or function that it is about."""
    severity: str
    """``error``, ``warning`` or ``remark``."""
    kind: str
    """A short name of the rule, such as ``late_binding``."""
    sentence: str
    """What was found, and what to do."""


def make_finding(kind: str, severity: str, on: str, **parts: Any) -> StaticFinding:
    """Make a finding with the sentence of its kind; ``parts`` fill its placeholders besides ``on``."""
    texts = [SENTENCES[kind], *([ADVICE[kind]] if kind in ADVICE else [])]
    names = {"on": on, "hook": on, **parts}
    return StaticFinding(on, severity, kind, join_sentences([_(text).format(**names) for text in texts]))


def make_finding_of_cause(cause: str, on: str, **names: str) -> StaticFinding:
    """Make the finding of a hook that can never fire, with the words that a recording has for the same cause."""
    said = EXPLANATIONS[cause]
    sentences = [_(text).format(on=on, **names) for text in (said.sentence, said.advice)]
    never = _("{hook} on {on} never fires.").format(on=on, **names)
    return StaticFinding(on, "error", said.kind, join_sentences([never, *sentences]))
