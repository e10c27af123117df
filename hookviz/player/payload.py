"""The types of all messages between Python and the browser.

``make bundle`` writes ``browser/common/payload.d.ts`` from this file, for the type checker of the JavaScript.
Sentences are sent in the language of the content; another language is another content.
"""

from typing import Any, Literal, NotRequired, TypedDict

from hookviz.support.messages.languages import current_language

CHUNK_SIZE = 200
"""The number of steps whose words are sent in one chunk."""

Packed = str
"""Plain data, packed by ``compression.pack``."""
Glyph = Literal["node", "seed", "module", "optimizer", "hook", "retain", "grad", "exception", "note"]
"""The shape of a step on the timeline."""
Norm = float | str | None
"""The 2-norm of the arriving gradient, in four digits; ``"nan"`` or ``"inf"``; None if no gradient arrives."""
Spans = list[tuple[int, int]]
"""Steps as (first, last) of each run of consecutive steps."""
PictureText = tuple[int, str, list[str]]
"""(step, what a text of the picture says from that step on, the numbers in it before and after a change).

A text with words has one number, ``gradient 10`` has ``10``; a text that is one number has none here.
"""


class Question(TypedDict):
    """A question that is asked before a step. The answer is numbers, or one of several choices."""

    text: str
    run: int
    """The index of the run that it is about."""
    answer: NotRequired[str]
    """The right numbers, separated by commas."""
    mistakes: NotRequired[list[tuple[str, str]]]
    """(wrong numbers, why they are wrong)."""
    choices: NotRequired[list[str]]
    right: NotRequired[int]
    """The index of the right choice."""
    reasons: NotRequired[list[str]]
    """Why each choice is wrong; empty for the right one."""
    hook: NotRequired[int]
    """The index of the hook whose source is shown with it."""


class Reason(TypedDict):
    """Why a gradient has its value."""

    text: str
    """The formula with its values filled in."""
    source: str
    """The formula as PyTorch's derivatives.yaml has it; may be empty."""
    note: str


class SourceText(TypedDict):
    """A text of the user's code."""

    title: str
    """Its file or notebook cell."""
    text: str
    first_line: int
    """The line number of the first line of ``text``."""


CodeLine = tuple[int, int | None, str, int | None]
"""(index in ``Content.sources``, number of the line that runs now, what the line does, number of the line that made the
tensor, the node or the call that the step is about); None for a line that is not known, or not in this text."""


class Amount(TypedDict):
    """A tensor on a card."""

    name: str
    """Its name, or where a gradient comes from or goes to; empty for the only one."""
    value: str
    """Its only number, a short list of numbers, or its norm."""
    size: float | None
    """The norm, for the bar; None for no bar."""
    note: str
    """What the value is the norm of."""


CardRole = Literal["before", "after", "extra"]


class Card(TypedDict):
    """A card of a step: what it begins with, what it ends with, or what else a hook was given."""

    role: CardRole
    label: str
    amounts: list[Amount]


class StepWords(TypedDict):
    """The texts that the panel shows at a step."""

    title: str
    sentence: str
    forward: bool
    """Whether the step belongs to the forward pass."""
    cards: list[Card]
    before: str | None
    after: str | None
    """All numbers or statistics of the cards."""
    gradients: list[tuple[str, str]]
    """(source or target, gradient) for each gradient that arrives or is sent."""
    moves: NotRequired[list[tuple[str, str]]]
    """(parameter, what an optimizer did to it); the last one may be (empty, how many others there are)."""
    headline: NotRequired[str]
    """What the hook did, with a verb; or a short form of a long sentence. Missing if the sentence is the headline."""
    facts: NotRequired[str]
    """What else is known of what the hook did."""
    reasons: NotRequired[list[Reason]]
    code: NotRequired[CodeLine]
    """The line of the user's code that the step belongs to."""
    registration: str
    """The dict in which the hook is registered, and when the hook runs."""
    next_hook: str
    """The hook that gets this gradient next."""
    writes_grad_of: NotRequired[str]
    """The tensor whose ``.grad`` the step writes; ``after`` is its value."""


class Overview(TypedDict):
    """An overview of all steps, which is sent first: a column for each field."""

    kind: list[str]
    glyph: list[Glyph]
    view: list[int]
    """The index in ``views`` of the picture in which the player shows the step."""
    hook: list[int]
    """The index of the step's hook in ``Content.hooks``; -1 if the step has none."""
    norm: list[Norm]
    questions: dict[str, list[int]]
    """Step → the indices in ``Content.questions`` of the questions before it, which are asked one after the other."""
    views: list[str]
    """The name of the top-level picture of each pass."""
    pass_numbers: list[int]
    """The number of each pass."""
    losses: list[str]
    """The number at which each pass starts; empty if it is not known."""


class StepsChunk(TypedDict):
    """The words of ``CHUNK_SIZE`` steps; the last chunk may have fewer."""

    steps: list[StepWords]


class SharedPicture(TypedDict):
    """A picture made from an SVG template that several views share, and the texts that fill its holes."""

    pieces: NotRequired[list[str | int]]
    """Pieces of the template: text, or an index into ``fill``. Missing if the view ``like`` has them."""
    like: NotRequired[str]
    """The name of the view that has the pieces."""
    fill: list[str]


class HookPin(TypedDict):
    """The pin of a hook in a picture."""

    hook: int
    """The index of the hook in ``Content.hooks``; -1 if it never ran."""
    value: str
    """The id of the text that shows what the hook did."""
    reason: NotRequired[str]
    """Why the hook did not fire, and what to do; missing if it fired, or if the trace does not know it."""


class StackBar(TypedDict):
    """A bar of a stack of equal module calls: it stands for one call, or for a few that follow one another."""

    count: int
    """How many calls it stands for."""
    view: str
    """The name of the picture in which the first of them is opened."""
    spans: Spans
    """The steps inside."""
    heights: list[tuple[int, float]]
    """(step, height from then on, from 0 to 1; -1 for a gradient with NaN or Inf) for each call."""


class View(TypedDict):
    """A picture, and what it shows at each step. Elements are named by their ids in the SVG."""

    svg: int | SharedPicture
    """The picture as a template, or its index in ``Content.svgs``; -1 for no picture."""
    steps: dict[str, list[int]]
    """Element → the steps in which something happens to it."""
    clicks: dict[str, list[int]]
    """Element → the steps that a click on it goes to, if these differ from ``steps``."""
    texts: dict[str, list[PictureText]]
    """Text element → what the steps write there."""
    related: dict[str, list[str]]
    """Step → further elements that are highlighted."""
    pins: dict[str, HookPin]
    """Pin → its hook."""
    arrows: dict[str, tuple[str, str]]
    """Arrow of a gradient → the box at which it starts, and the box to which it points."""
    spans: dict[str, Spans]
    """A box that can be opened → the steps inside."""
    links: dict[str, str]
    """Element → the name of the picture that a click on it opens."""
    stacks: dict[str, list[StackBar]]
    """The box of a stack → its bars, in the order of the calls."""
    visible_steps: Spans
    """The steps that are inside what is opened in this picture; of the top-level picture, all."""
    breadcrumbs: list[tuple[str, str]]
    """(name, title) of each picture on the path from the top-level picture to this one."""


class IndexChunk(TypedDict):
    """The search index: a column for each field of ``search_index.Entry``."""

    kind: list[str]
    label: list[str]
    note: list[str]
    number: list[int]
    view: list[str]
    steps: list[list[int]]


class PlotChunk(TypedDict):
    """A plot as a part of a page: an SVG whose marks lead to steps, and its numbers; or why there is none."""

    markup: str


Chunk = StepsChunk | View | IndexChunk | PlotChunk


class FiringRow(TypedDict):
    """A row of the table of firings."""

    step: int
    hook: str
    kind: str
    on: str
    change: str
    effect: str
    effect_kind: str
    """What the hook did: ``kept``, ``edited`` or ``replaced``, as in ``Step.effect``."""
    name: str
    """The name of the hook without its place."""
    changed: bool
    """Whether something has other numbers after the hook."""
    short: str
    """What the hook did in a few letters, such as ``× 5``."""


class SilentHook(TypedDict):
    """A hook that did not fire, and why."""

    name: str
    on: str
    reason: str


class HookFields(TypedDict):
    """What is known of the hooks of a run."""

    firings: list[FiringRow]
    changing: list[int]
    """The steps in which a hook changed something."""
    silent: list[SilentHook]
    summary: list[str]
    """How many calls of hooks changed something, looked, and which hooks did not fire; empty without hooks."""


class RunContent(HookFields):
    """One recorded run: an overview of its steps, its table of firings and its pictures."""

    label: str
    """The name of the run; empty if there is only one."""
    baseline: int | None
    """The index of the run that this one is compared with."""
    notes: list[str]
    steps: int
    """The number of steps."""
    overview: Overview | Packed
    word_indices: list[int] | None
    """For each step the index of its words among the words of all runs; None if each step has its own."""
    final_svg: int
    """The index in ``Content.svgs`` of the picture of its last pass, which the static version of the player shows."""
    last_pass: str
    """The title of its last pass; empty if it has only one."""


class HookText(TypedDict):
    """A hook: its name, location and source."""

    name: str
    """``c_hook``; ``λ`` and its body for a lambda."""
    where: str
    """The file and the line of its source."""
    source: str | None
    """The text of its source."""
    no_source: str | None
    """Why there is no source; None if there is."""
    first_line: int | None
    """The line number of the first line of ``source``."""
    return_line: int | None
    """The line number of the ``return`` statement."""


class Switch(TypedDict):
    """A hook that can be switched off."""

    label: str
    on: str
    hooks: list[int]
    """The indices of the hook in ``Content.hooks``."""


class FindingText(TypedDict):
    """One cause with what follows from it, and the step in which it begins."""

    text: str
    """What is so."""
    more: str
    """Why it is so, and what to do."""
    name: str
    """What it is about in a few words, such as ``vanishing``."""
    silent: bool
    """Whether it says why hooks did not fire."""
    step: int


class InitialState(TypedDict, total=False):
    """The parts of a player's initial state that differ from ``INITIAL``."""

    shown: int
    split: bool
    norms: bool


class Content(TypedDict):
    """The content of a player: one trace, or several runs of one program."""

    runs: list[RunContent]
    chunk_size: int
    """The number of steps whose words are in one chunk."""
    chunks: dict[str, Chunk | Packed]
    """The chunks that are sent first: ``steps0`` …, the views by their names, ``index``, and ``plot0`` …"""
    svgs: list[str]
    grouped: bool
    """Whether boxes are collapsed into groups, which can be opened."""
    layers: Packed
    """The pictures with the tensors; empty if there are none."""
    plots: list[str]
    """The names of the plots; the chunks ``plot0`` … hold them, or the kernel draws them."""
    about: str
    """What the player shows, as a phrase: the name of the player for screen readers."""
    title: str
    """The statement that started the pass, or the name of the script: the title of a page."""
    hooks: list[HookText]
    questions: list[Question]
    sources: list[SourceText]
    """The user's code, which ``StepWords.code`` refers to."""
    switches: list[Switch]
    combinations: dict[str, int]
    """The indices of the switches that are off, separated by commas → the index of the run."""
    first_difference: int
    """The first step in which two compared runs differ; -1 for none."""
    findings: list[FindingText]
    no_finding: str
    """The sentence to show if there are no findings."""
    notes: list[str]
    labels: dict[str, str]
    """The labels, hints and messages of the player itself: key → text with ``{named}`` placeholders."""
    language: str
    """The language of all texts, such as ``en``."""
    others: dict[str, Packed]
    """Language → the same content in that language; empty if the kernel makes it when it is asked."""
    initial_state: InitialState


class PlayerState(TypedDict):
    """What the user has chosen. Each key is a trait of the widget, which Python can set and link."""

    step: int
    playing: bool
    hooks_only: bool
    """Whether playing goes from hook to hook."""
    speed: float
    predict: bool
    answered: dict[str, int]
    """Index of a question → 1 if the first answer was right, 0 if not, -1 if it was passed before predicting began."""
    asked: int
    right: int
    breakpoints: list[int]
    large: bool
    tensors: bool
    norms: bool
    shown: int
    """The index of the run that is shown."""
    flipped: bool
    """Whether a switch was flipped. If so, numbers are compared with the run with all hooks on."""
    split: bool
    twin: str
    """The name of the element of a page that a player with a kernel replaces."""


INITIAL: PlayerState = {
    "step": 0,
    "playing": False,
    "hooks_only": False,
    "speed": 1.0,
    "predict": False,
    "answered": {},
    "asked": 0,
    "right": 0,
    "breakpoints": [],
    "large": False,
    "tensors": False,
    "norms": False,
    "shown": 0,
    "flipped": False,
    "split": False,
    "twin": "",
}
"""The initial state of every player, in a page and in a widget."""


class PageState(PlayerState):
    """The state of a player in a page, with its content."""

    content: Content


class ChunkRequest(TypedDict):
    """A request of the browser for a chunk."""

    chunk: str


class LanguageRequest(TypedDict):
    """A request of the browser for the content in another language."""

    language: str


class ChunkReply(TypedDict):
    """The reply to a ``ChunkRequest``; ``packed`` is None if there is no such chunk."""

    chunk: str
    packed: Packed | None


def empty_content(labels: dict[str, str]) -> Content:
    """Return the content of a player that has nothing to show."""
    return {
        "runs": [],
        "chunk_size": CHUNK_SIZE,
        "chunks": {},
        "svgs": [],
        "grouped": False,
        "layers": "",
        "plots": [],
        "about": "",
        "title": "",
        "hooks": [],
        "questions": [],
        "sources": [],
        "switches": [],
        "combinations": {},
        "first_difference": -1,
        "findings": [],
        "no_finding": "",
        "notes": [],
        "labels": labels,
        "language": current_language(),
        "others": {},
        "initial_state": {},
    }


def page_state(content: Content) -> PageState:
    """Return the state of a player in a page before the user has chosen anything."""
    state: dict[str, Any] = {**INITIAL, **content["initial_state"], "content": content}
    return state  # type: ignore[return-value]
