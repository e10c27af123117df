"""What travels between Python and the browser: every message, typed.

``browser/payload.d.ts`` is made from this file (``make bundle``), so that the type checker of the JavaScript holds it
to the same. Sentences travel as keys and arguments (``Message``), with the texts for these keys beside them: a player
shows them in any language that it is given the texts of.
"""

from typing import Any, Literal, NotRequired, TypedDict

from hookviz.support.messages.text import Message

CHUNK_SIZE = 200
"""The words of so many steps are one part."""

Packed = str
"""Plain data, compressed: see ``compression``."""
Glyph = Literal["node", "seed", "module", "optimizer", "hook", "retain", "grad", "exception", "note"]
"""The shape of a step on the timeline."""
Norm = float | str | None
"""The 2-norm of a gradient that arrives, in four digits; ``nan`` or ``inf`` in words; None where none arrives."""
Spans = list[tuple[int, int]]
"""Steps as (first, last) of each unbroken row of them."""
Words = dict[str, str]
"""Key → text with ``{named}`` places."""


class Question(TypedDict):
    """What is asked before a step: for numbers, or for one of several choices."""

    text: Message
    answer: NotRequired[str]
    """The right numbers, with commas between."""
    mistakes: NotRequired[list[tuple[str, Message]]]
    """(wrong numbers, why they are wrong)"""
    choices: NotRequired[list[Message]]
    right: NotRequired[int]
    """The place of the right choice."""
    reasons: NotRequired[list[Message]]
    """For each choice why it is wrong; empty for the right one."""
    shows_source: NotRequired[bool]
    """Whether the hook's source may be seen with the choices."""


class Reason(TypedDict):
    """Why a gradient is what it is."""

    text: Message
    """The formula, with the values in it."""
    source: str
    """PyTorch's own text of the formula; may be empty."""
    note: Message


class StepWords(TypedDict):
    """What the panel shows of a step."""

    title: Message
    sentence: Message
    forward: bool
    """Whether it belongs to the forward pass."""
    before: Message | None
    after: Message | None
    before_label: Message
    after_label: Message
    parts: list[tuple[Message, Message]]
    """(where from or where to, the gradient)"""
    why: NotRequired[list[Reason]]
    kept: Message
    """Where the hook is kept, and when it runs."""
    next: Message
    """Which hook sees this gradient next."""


class Outline(TypedDict):
    """What is known of all steps from the start: a column for each thing."""

    kind: list[str]
    glyph: list[Glyph]
    picture: list[int]
    """The place of the step's picture in ``views``."""
    hook: list[int]
    """The place of the step's hook in ``Content.hooks``; -1 for none."""
    norm: list[Norm]
    questions: dict[str, Question]
    """Step → what is asked before it."""
    views: list[str]
    """The names of the outermost pictures, one for each pass."""
    overview: str
    """The name of the picture of all passes; empty where there is none."""


class StepsPart(TypedDict):
    """The words of ``CHUNK_SIZE`` steps, or of fewer at the end."""

    steps: list[StepWords]
    words: Words


class SharedPicture(TypedDict):
    """A picture of a structure that several views share: the pieces of its SVG, and what fills the holes in them."""

    pieces: NotRequired[list[str | int]]
    """Text, or a place in ``fill``. Missing where the view ``like`` has them."""
    like: NotRequired[str]
    fill: list[str]


class HookPin(TypedDict):
    """A hook in a picture."""

    hook: int
    """Its place in ``Content.hooks``; -1 where it never ran."""
    value: str
    """The id of the text that says what it did."""


class View(TypedDict):
    """A picture, and what is shown in it at which step. Elements go by their ids in the SVG."""

    svg: int | str | SharedPicture
    """The picture, or its place in ``Content.svgs``; -1 for none."""
    steps: dict[str, list[int]]
    """Element → the steps that are about it."""
    clicks: dict[str, list[int]]
    """Element → the steps that a click on it leads to, where those are others."""
    texts: dict[str, list[tuple[int, Message]]]
    """Text → (step, what it says from then on)."""
    near: dict[str, list[str]]
    """Step → elements that it concerns as well."""
    pins: dict[str, HookPin]
    spans: dict[str, Spans]
    """A box that can be entered → the steps inside."""
    doors: dict[str, str]
    """What leads to another picture, when it is clicked → that picture's name."""
    own: Spans
    """The steps that are seen in this picture, or inside its boxes."""
    trail: list[tuple[str, Message]]
    """(name, title) of the pictures around this one, the outermost first, and of this one."""


class ViewPart(View):
    """A view that is sent alone."""

    words: Words


class IndexPart(TypedDict):
    """What can be searched for: a column for each field of ``search_index.Entry``."""

    kind: list[str]
    label: list[Message]
    note: list[Message]
    number: list[int]
    view: list[str]
    steps: list[list[int]]
    words: Words


Part = StepsPart | ViewPart | IndexPart


class FiringRow(TypedDict):
    """A row of the table of hooks."""

    step: int
    hook: str
    kind: Message
    on: Message
    change: Message
    effect: Message


class RunContent(TypedDict):
    """One recorded program: its steps, and how they are shown."""

    label: Message
    """Which one it is, where there are several."""
    beside: int | None
    """The place of the run that its numbers are compared with."""
    notes: list[Message]
    steps: int
    """How many there are."""
    outline: Outline | Packed
    told: list[int] | None
    """For each step the place of its words among those of all runs; None where each step has its own."""
    firings: list[FiringRow]
    pictures: list[int]
    """The places in ``Content.svgs`` of the pictures that it opens with."""


class HookText(TypedDict):
    """A hook: what it is called, and where and how it was written."""

    name: str
    where: Message
    source: str | None
    missing: Message | None
    """What stands in the place of a source that there is not."""
    first: int | None
    """The number of the source's first line."""
    mark: int | None
    """The number of the line that returns."""


class Switch(TypedDict):
    """A hook that can be switched off."""

    label: str
    on: Message
    hooks: list[int]
    """Its places in ``Content.hooks``."""


class FindingText(TypedDict):
    """Something that is wrong with the gradients, and the step where it begins."""

    text: Message
    step: int


class Opening(TypedDict, total=False):
    """How a player opens, where that is not as ``INITIAL`` has it."""

    shown: int
    split: bool
    norms: bool


class Content(TypedDict):
    """All that a player shows: a trace, or several passes of one program."""

    runs: list[RunContent]
    chunk: int
    """How many steps' words are in one part."""
    parts: dict[str, Part | Packed]
    """The parts that are there from the start: ``steps0`` …, the views by their names, and ``index``."""
    svgs: list[str]
    grouped: bool
    """Whether boxes are put together into groups, which can be entered."""
    layers: Packed
    """The same pictures with the nodes' lists of pre-hooks, and with the tensors; empty where there are none."""
    hooks: list[HookText]
    switches: list[Switch]
    combinations: dict[str, int]
    """Which switches are off, by their places with commas between → the run that shows it."""
    mark: int
    """The step where a difference begins; -1 for none."""
    findings: list[FindingText]
    no_finding: Message
    """What to say where nothing was found."""
    notes: list[Message]
    words: Words
    opening: Opening


class PlayerState(TypedDict):
    """What a person has chosen; a trait of the widget for each, which Python can set and link."""

    step: int
    playing: bool
    speed: float
    predict: bool
    answered: dict[str, int]
    """Step → 1 where the question before it was answered right at once, else 0."""
    asked: int
    right: int
    breakpoints: list[int]
    large: bool
    tensors: bool
    nodes: bool
    norms: bool
    shown: int
    """The place of the run that is shown."""
    flipped: bool
    """Whether a switch was flipped: from then on numbers are compared with those of every hook on."""
    split: bool
    twin: str
    """What the place in a page is called that a living player takes."""


INITIAL: PlayerState = {
    "step": 0,
    "playing": False,
    "speed": 1.0,
    "predict": False,
    "answered": {},
    "asked": 0,
    "right": 0,
    "breakpoints": [],
    "large": False,
    "tensors": False,
    "nodes": False,
    "norms": False,
    "shown": 0,
    "flipped": False,
    "split": False,
    "twin": "",
}
"""What a player begins with, in a page as in a widget."""


class PageState(PlayerState):
    """What a player in a page is given."""

    content: Content


class PartRequest(TypedDict):
    """The browser asks for a part that it has not."""

    part: str


class PartReply(TypedDict):
    """The answer; ``packed`` is None where there is no such part."""

    part: str
    packed: Packed | None


def empty_content(words: Words) -> Content:
    """The content of a player that has nothing to show."""
    return {
        "runs": [],
        "chunk": CHUNK_SIZE,
        "parts": {},
        "svgs": [],
        "grouped": False,
        "layers": "",
        "hooks": [],
        "switches": [],
        "combinations": {},
        "mark": -1,
        "findings": [],
        "no_finding": "",
        "notes": [],
        "words": words,
        "opening": {},
    }


def page_state(content: Content) -> PageState:
    """What a page hands to the player, before a person has chosen anything."""
    state: dict[str, Any] = {**INITIAL, **content["opening"], "content": content}
    return state  # type: ignore[return-value]
