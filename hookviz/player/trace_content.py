"""The content of a player of one trace: an overview that is sent first, and chunks that are sent on request.

A chunk is the words of ``CHUNK_SIZE`` steps (``steps0``, ``steps1`` …), a picture (``0/``, ``0/m3`` …; see
``grouped_views``), ``index``, the search index, or a plot (``plot0`` …). The content of a small trace contains all
chunks but the plots, which are drawn when somebody asks for them. For a large trace, a widget requests chunks from the
kernel, a page contains all chunks, and the output of a notebook cell the first ones.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from hookviz.analysis.findings import Diagnosis, Finding, describe_pass, diagnose
from hookviz.analysis.findings.finding import is_about_silence, name_of_finding, name_of_severity
from hookviz.analysis.formulas.reasons import Explainer
from hookviz.analysis.hook_effects import HookEffects
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, has_many_passes
from hookviz.picture.plots.plot import list_plots, make_plot, write_markup
from hookviz.picture.svg import escape_text
from hookviz.picture.visible_graph import MAX_UNREACHED_NODES
from hookviz.player.code_texts import CodeTexts, describe_program
from hookviz.player.compression import pack
from hookviz.player.grouped_views import GroupedViews
from hookviz.player.hook_texts import describe_hooks, hook_text, list_reasons
from hookviz.player.labels import screen_labels
from hookviz.player.payload import (
    CHUNK_SIZE,
    Chunk,
    Content,
    FindingText,
    Overview,
    PlotChunk,
    RunContent,
    StepsChunk,
    empty_content,
)
from hookviz.player.scene_views import SceneViews, pass_title
from hookviz.player.search_index import Entry, index_chunk
from hookviz.player.step_words import QuestionPool, StepTexts, describe_content, make_overview
from hookviz.support.interpreter import gc_paused
from hookviz.support.messages import _, join_list, join_sentences
from hookviz.support.messages.languages import current_language, speaking
from hookviz.support.progress import progress
from hookviz.trace import Step, TraceData

MAX_UNSPLIT_STEPS = 400
"""A trace with more steps is large. The words of a step take about 0.5 KB."""
OUTPUT_CHUNKS, OUTPUT_BOXES = 3, 24
"""The number of step chunks, and of pictures, in the output of a notebook cell of a large trace; up to
``MAX_VISIBLE_BOXES`` passes have a picture each."""
SEARCH_INDEX = "index"


class TraceContent:
    """Makes the content of a player, and its chunks, in the language in which hookviz speaks now.

    Args:
        trace: the trace to show.
        diagnosis: what was found in it.
        no_finding: the sentence to show if there are no findings; None takes that of the diagnosis.
    """

    def __init__(self, trace: TraceData, diagnosis: Diagnosis, *, no_finding: str | None = None) -> None:
        self.trace, self._diagnosis = trace, diagnosis
        self._language = current_language()
        self._no_finding = diagnosis.nothing if no_finding is None else no_finding
        self._reasons = list_reasons(diagnosis.silent_hooks)
        small = SceneViews(trace, self._reasons)
        is_long = len(trace.rows) > MAX_UNSPLIT_STEPS or has_many_passes(trace)
        self.is_large = is_long or not small.are_small
        """Whether it has too many steps, passes or boxes to be sent and shown at once."""
        self._pictures: SceneViews | GroupedViews = GroupedViews(trace, self._reasons) if self.is_large else small
        self._hooks = {row: index for index, row in enumerate(trace.lookup.hooks_that_ran)}
        self._code = CodeTexts()
        self._effects = HookEffects(trace)
        self._step_texts = StepTexts(Explainer(trace), self._effects, self._code.add(diagnosis.lines))

    @classmethod
    @gc_paused()
    def of(cls, trace: TraceData, *, no_finding: str | None = None) -> "TraceContent":
        """Diagnose ``trace``, and make its content; ``no_finding`` as in the class."""
        return cls(trace, diagnose(trace), no_finding=no_finding)

    @gc_paused()
    def content(self) -> Content:
        """Make the content of a widget, which can request further chunks."""
        if not self.trace.rows:
            return self._content([])
        return self._content([*self._pictures.initial_views, "steps0"] if self.is_large else [*self.chunk_names()])

    @gc_paused()
    def full_content(self, *, plots: bool = False) -> Content:
        """Make the content with all chunks, for a page without a kernel. Long runs show progress.

        Args:
            plots: whether the plots are among them.

        Raises:
            ImportError: Matplotlib, which draws the plots, is not installed.
        """
        content = self._large_content() if self.is_large else self.content()
        if plots:
            content["plots"] = name_plots(self.trace)
            for number, _name in enumerate(content["plots"]):
                self._add_chunk(content, f"plot{number}")
        return content

    def _large_content(self) -> Content:
        content = self._content([*self._pictures.initial_views])
        names, passes = [*self._step_chunk_names()], self.trace.lookup.passes
        entries: list[Entry] = []
        with progress(
            _("Preparing the player: {n} of {total}").format(n="{n}", total="{total}"), len(names) + len(passes)
        ) as tick:
            for name in names:
                self._add_chunk(content, name)
                tick()
            for pass_id in passes:
                for name in self._pictures.views_of(pass_id):
                    self._add_chunk(content, name)
                entries += self._pictures.entries(pass_id)
                tick()
        content["chunks"][SEARCH_INDEX] = pack(index_chunk(entries))
        return content

    @gc_paused()
    def brief_content(self) -> Content:
        """Make the content of a cell's output: all of a small trace, and the first steps and boxes of a large trace."""
        if not self.is_large:
            return self.content()
        content, steps = self.content(), list(self._step_chunk_names())
        most = max(OUTPUT_BOXES, min(MAX_VISIBLE_BOXES, len(self._pictures.top_views)))
        boxes = list(islice(self._view_names(), most + 1))
        for name in (SEARCH_INDEX, *steps[:OUTPUT_CHUNKS], *boxes[:most]):
            self._add_chunk(content, name)
        if len(steps) > OUTPUT_CHUNKS:
            content["notes"].append(
                _(
                    "This output holds only the first {steps} steps. trace.player() shows all of them while its "
                    "kernel runs, and trace.to_html() makes a page with all of them."
                ).format(steps=f"{OUTPUT_CHUNKS * CHUNK_SIZE:,}")
            )
        if len(boxes) > most:
            content["notes"].append(
                _(
                    "In this output only the first {boxes} boxes can be opened. trace.player() opens the others "
                    "while its kernel runs, and a page made with trace.to_html() opens all of them."
                ).format(boxes=most)
            )
        return content

    def chunk_names(self) -> Iterator[str]:
        """Yield the names of all chunks."""
        yield from self._step_chunk_names()
        yield from self._view_names()
        yield SEARCH_INDEX

    def chunk(self, name: str) -> Chunk:
        """Make the chunk ``name``.

        Raises:
            KeyError, IndexError, ValueError: there is no such chunk.
        """
        with speaking(self._language):
            return self._chunk(name)

    def _chunk(self, name: str) -> Chunk:
        if name.startswith("steps"):
            return self._steps_chunk(int(name.removeprefix("steps")))
        if name.startswith("plot"):
            return draw_plot(self.trace, int(name.removeprefix("plot")))
        if name == SEARCH_INDEX:
            passes = self.trace.lookup.passes
            return index_chunk(entry for pass_id in passes for entry in self._pictures.entries(pass_id))
        return self._pictures.view(name, self._hooks)

    def _steps_chunk(self, number: int) -> StepsChunk:
        steps = self.trace.steps[number * CHUNK_SIZE : (number + 1) * CHUNK_SIZE]
        if not steps:
            raise KeyError(number)
        return {"steps": [self._step_texts.words(step) for step in steps]}

    def _add_chunk(self, content: Content, name: str) -> None:
        """Add the chunk ``name`` to ``content`` unless it is there."""
        if name not in content["chunks"]:
            chunk = self.chunk(name)
            content["chunks"][name] = pack(chunk) if self.is_large else chunk

    def _step_chunk_names(self) -> Iterator[str]:
        """Return the names of the chunks with the words of steps."""
        return (f"steps{number}" for number in range(-(-len(self.trace.rows) // CHUNK_SIZE)))

    def _view_names(self) -> Iterator[str]:
        """Yield the names of all pictures, those of whole passes first."""
        yield from self._pictures.top_views
        for pass_id in self.trace.lookup.passes:
            yield from self._pictures.views_of(pass_id)[1:]

    def _content(self, names: list[str]) -> Content:
        """Make the content with the chunks ``names``."""
        firings, pool = self.trace.firings, QuestionPool()
        overview = self._overview(firings, pool)
        hooks = describe_hooks(self._effects, firings, self.trace, self._reasons)
        passes = self.trace.lookup.passes
        has_others = len(passes) > 1 or self.trace.lacks_passes
        run: RunContent = {
            "label": "",
            "baseline": None,
            "notes": [],
            "steps": len(self.trace.rows),
            "overview": pack(overview) if self.is_large else overview,
            "word_indices": None,
            **hooks,
            "final_svg": len(self._pictures.svgs) - 1,
            "last_pass": pass_title(self.trace, passes[-1]) if has_others else "",
        }
        content: Content = {
            **empty_content(screen_labels()),
            "runs": [run],
            "svgs": [*self._pictures.svgs],
            "grouped": self.is_large,
            "layers": self._pictures.layers,
            "about": describe_content(self.trace),
            "title": describe_program(self.trace),
            "hooks": [hook_text(self.trace, row) for row in self._hooks],
            "questions": pool.questions,
            "sources": self._code.texts(),
            "findings": [_finding_text(self.trace, finding) for finding in self._diagnosis.findings],
            "no_finding": self._no_finding,
            "notes": [*self.trace.notes, *self._limit_notes(len(firings), len(hooks["firings"]))],
            "language": self._language,
            "initial_state": {"norms": self.is_large},
        }
        for name in names:
            self._add_chunk(content, name)
        return content

    def _overview(self, firings: Sequence[Step], pool: QuestionPool) -> Overview:
        # Questions about nodes require a look at every step, so a long trace only has questions about hooks.
        with_questions = bool(firings) or len(self.trace.rows) <= MAX_UNSPLIT_STEPS
        questions = pool.add_all(self.trace.steps, firings, self._hooks) if with_questions else {}
        views = dict(zip(self.trace.lookup.passes, self._pictures.top_views, strict=True))
        return make_overview(self.trace, self.trace.rows, views, self._hooks, questions)

    def _limit_notes(self, firing_count: int, shown_count: int) -> Iterator[str]:
        """Yield a note for each limit that leaves something out."""
        if firing_count > shown_count:
            yield _("{count} hooks fired; the table shows the first {shown}.").format(
                count=f"{firing_count:,}", shown=f"{shown_count:,}"
            )
        if self._pictures.leave_nodes_out:
            yield _(
                "A pass reached only a small part of its graph. Its picture shows that part and, of the "
                "rest, the {most} nodes nearest to where the pass began."
            ).format(most=MAX_UNREACHED_NODES)


def name_plots(trace: TraceData) -> list[str]:
    """Return the names of the plots of a trace."""
    return [name for name, _options in list_plots(trace)]


def draw_plot(trace: TraceData, number: int) -> PlotChunk:
    """Draw one of the plots of a trace; one that has nothing to show says so.

    Raises:
        IndexError: there is no such plot.
        ImportError: Matplotlib is not installed.
    """
    _name, options = list_plots(trace)[number]
    try:
        return {"markup": write_markup(make_plot(trace, options))}
    except ValueError as error:
        return {"markup": escape_text(str(error))}


def _finding_text(trace: TraceData, finding: Finding) -> FindingText:
    """Return the text of a finding and its step; a finding that no step shows leads to the first step."""
    where = "" if finding.step is None else _("Step {step}").format(step=finding.step + 1)
    severity = name_of_severity(finding.severity)
    head = join_list([describe_pass(trace, finding), where, severity, finding.when])
    text = _("{head}: {sentence}").format(head=head, sentence=finding.sentence)
    name = name_of_finding(finding)
    return {
        "text": text,
        "more": join_sentences([finding.cause, finding.advice]),
        "name": f"{name}: {finding.hooks[0].label}" if len(finding.hooks) == 1 else name,
        "silent": is_about_silence(finding),
        "step": finding.step or 0,
    }
