"""Every view of a saved trace, as text: ``python every_view.py views.json trace.json ...``; it needs hookviz alone.

A trace is compared with the one in ``trace.json.other``, if that is there, else with itself.
"""

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import hookviz as hv
from hookviz.__main__ import main


def every_view(path: Path) -> dict[str, Any]:
    """What each view of the trace in a file shows."""
    trace = hv.load(path)
    other = path.with_suffix(".json.other")
    steps, quiz, compared = range(len(trace.rows)), trace.quiz(), trace.diff(hv.load(other if other.exists() else path))
    with tempfile.TemporaryDirectory() as folder:
        html, again, twice, command = (Path(folder, name) for name in ("a.html", "b.json", "c.json", "d.html"))
        trace.to_html(html, title=path.stem)
        trace.save(again)
        hv.load(again).save(twice)
        main(["page", str(path), "-o", str(command)])
        written = {"page": html.read_text(), "saved": again.read_text(), "saved twice": twice.read_text()}
        written |= {"page by the command line": command.read_text()}
    return {
        **written,
        "repr": repr(trace),
        "notes": trace.notes,
        "steps": [(step.sentence, step.scale, step.effect) for step in trace.steps],
        "firings": [repr(trace.firings), trace.firings._repr_html_()],
        "troubles": [repr(trace.troubles), trace.troubles._repr_html_()],
        "why": [[_reason(reason) for reason in trace.why(step)] for step in steps],
        "quiz": [(asked.text, asked.choices, repr(quiz.check(asked.number, 1))) for asked in quiz],
        "output": trace._repr_mimebundle_(),
        "picture": trace.figure().pipe(format="svg").decode(),
        "picture of tensors": base64.b64encode(trace.figure(0, tensors=True).pipe(format="png")).decode(),
        "comparison": [repr(compared), compared._repr_mimebundle_()],
    }


def _reason(reason: Any) -> list[Any]:
    value = None if reason.value is None else repr(reason.value)
    return [reason.on, reason.text, reason.formula, reason.filled, value, reason.source, reason.verdict, reason.note]


if __name__ == "__main__":
    shown = {path: every_view(Path(path)) for path in sys.argv[2:]}
    Path(sys.argv[1]).write_text(json.dumps(shown), encoding="utf-8")
