"""Write every view of saved traces as text: ``python every_view.py views.json trace.json ...``; needs only hookviz.

A trace is compared with the one in ``trace.json.other``, if that file exists, else with itself.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import hookviz as hv
from hookviz.__main__ import main
from hookviz.course import quiz


def every_view(path: Path) -> dict[str, Any]:
    trace = hv.load(path)
    other = path.with_suffix(".json.other")
    steps, questions, comparison = (
        range(len(trace.steps)),
        quiz(trace),
        trace.diff(hv.load(other if other.exists() else path)),
    )
    with tempfile.TemporaryDirectory() as folder:
        page_path, saved_again, saved_twice, command_page_path = (
            Path(folder, name) for name in ("a.html", "b.json", "c.json", "d.html")
        )
        trace.to_html(page_path, title=path.stem)
        trace.save(saved_again)
        hv.load(saved_again).save(saved_twice)
        main(["page", str(path), "-o", str(command_page_path)])
        written = {
            "page": page_path.read_text(),
            "saved": saved_again.read_text(),
            "saved twice": saved_twice.read_text(),
        }
        written |= {"page by the command line": command_page_path.read_text()}
    return {
        **written,
        "repr": repr(trace),
        "text": trace.text(width=120),
        "records": repr(trace.to_records()),
        "notes": trace.notes,
        "steps": [(step.sentence, step.scale, step.effect) for step in trace.steps],
        "firings": [repr(trace.firings), trace.firings._repr_html_()],
        "troubles": [repr(trace.findings.values), trace.findings.values._repr_html_()],
        "findings": [repr(trace.findings), trace.findings._repr_html_()],
        "why": [[_reason(reason) for reason in trace.why(step)] for step in steps],
        "quiz": [(asked.text, asked.choices, repr(questions.check(asked.number, 1))) for asked in questions],
        "output": trace._repr_mimebundle_(),
        "picture": trace.figure().pipe(format="svg").decode(),
        "picture of tensors": trace.figure(0, tensors=True).pipe(format="svg").decode(),
        "comparison": [repr(comparison), comparison._repr_mimebundle_()],
    }


def _reason(reason: Any) -> list[Any]:
    value = None if reason.value is None else repr(reason.value)
    return [reason.on, reason.text, reason.formula, reason.filled, value, reason.source, reason.verdict, reason.note]


if __name__ == "__main__":
    views = {path: every_view(Path(path)) for path in sys.argv[2:]}
    Path(sys.argv[1]).write_text(json.dumps(views), encoding="utf-8")
