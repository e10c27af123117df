"""The user's code in a player: the texts, which all its runs share, and the line of each step."""

from collections.abc import Callable

from hookviz.analysis.source_lines.step_lines import CodeLine, StepLines
from hookviz.player.payload import SourceText
from hookviz.player.wording import Wording
from hookviz.support.messages import say
from hookviz.trace import SourceRow, Step, TraceData


class CodeTexts:
    """The texts of the user's code that the steps of a player belong to, each once."""

    def __init__(self) -> None:
        self._indices: dict[SourceRow, int] = {}

    def lines_of(self, trace: TraceData) -> Callable[[Step], CodeLine | None]:
        """Add the texts of ``trace``; return the function that finds the line of a step of it in all texts."""
        lines = StepLines(trace)
        indices = [self._indices.setdefault(source, len(self._indices)) for source in lines.sources]

        def find_line(step: Step) -> CodeLine | None:
            found = lines.line(step)
            return None if found is None else found._replace(source=indices[found.source])

        return find_line

    def texts(self, wording: Wording) -> list[SourceText]:
        """Return all texts that were added."""
        return [
            {"title": wording(_title(source)), "text": source.text, "first_line": source.line}
            for source in self._indices
        ]


def _title(source: SourceRow) -> str:
    """Return the file or notebook cell of a text; with its lines if it is not the whole file."""
    if source.whole:
        return source.file or ""
    last = source.line + max(len(source.text.splitlines()) - 1, 0)
    key = "code.part" if source.file else "code.unnamed"
    return say(key, file=source.file or "", first=source.line, last=last)
