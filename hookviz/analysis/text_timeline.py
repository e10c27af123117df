"""A trace as plain text for consoles and logs: one line per step, with a heading above each pass."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from hookviz.support.messages import N_, _, join_list
from hookviz.support.printable import describe_type, make_printable
from hookviz.support.terminal_text import find_terminal_width, measure_width, pad, truncate, wrap
from hookviz.trace import HOOK_KINDS, Step, TraceData
from hookviz.trace.hook_facts import name_of_kind
from hookviz.trace.hooks import name_of_effect
from hookviz.trace.sentences import describe_parameters, format_pass_number, format_scale, name_tensors
from hookviz.trace.trace import describe_counts
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.values import Value, Values

_WRONG_WIDTH = N_("width is a number of characters, at least {least}, not {width}.")

_KIND_NAMES = {
    "call": N_("call"),
    "forward": N_("return"),
    "optimizer_step": N_("optimizer step"),
    "unscale": N_("unscale"),
    "rescale": N_("new scale"),
    "seed": N_("seed"),
    "arrive": N_("arrive"),
    "retain_grad": "retain_grad",
    "compute": N_("compute"),
    "accumulate": N_("write .grad"),
    "synchronise": N_("synchronise"),
    "returned": N_("return gradient"),
    "aliased": N_("change without hook"),
    "unknown_hook": N_("unknown hook"),
    "exception": N_("exception"),
    "compiled": N_("compiled region"),
    "cut_short": N_("cut short"),
    "fast_path": N_("fast path"),
    "unobserved": N_("not observed"),
}


MAX_PRINTED_STEPS = 200
"""``print(trace)`` shows at most this many steps, the first and the last ones."""
MIN_WIDTH = 72
"""In columns: the narrowest timeline, and that where there is no terminal whose width is known."""
_GAP = "  "
_INDENT = 2
_MAX_DEPTH = 8
"""Modules that are nested deeper are indented no further, so that there is room for their names."""
_MAX_ITEMS = 3
"""The most tensors of one step that a line shows."""
_ROOM, _SMALL_ROOM, _DIGITS = 20, 12, 4
"""The most characters of the numbers of a tensor alone, and of one of several; the significant digits of a number."""
_MIN_CELL, _MIN_PLACE = 8, 18
"""In columns: cells are not shortened further, and the place of a hook only after the other cells."""

Role = Literal["title", "head", "pass", "hook", "fault", "step", "hint"]


class TextLine(NamedTuple):
    """A line of the timeline."""

    text: str
    role: Role
    """What the line is, for those who colour it."""


class _Row(NamedTuple):
    """A step before it is laid out in columns."""

    step: int
    cells: tuple[str, ...]
    role: Role


def choose_printed_steps(trace: TraceData) -> Sequence[int]:
    """Return the steps that ``print`` shows: all, or the first and the last ones."""
    count, half = len(trace.rows), MAX_PRINTED_STEPS // 2
    return range(count) if count <= MAX_PRINTED_STEPS else [*range(half), *range(count - half, count)]


def write_text(trace: TraceData, steps: Iterable[int] | None = None, width: int | None = None) -> str:
    """Write the timeline of ``steps`` (all if None) as one text: see ``Trace.text``."""
    hint = _("print(trace.text()) lists all {steps} steps, print(trace.text(steps)) those that you choose.").format(
        steps=f"{len(trace.rows):,}"
    )
    return "\n".join(line.text for line in make_timeline(trace, steps, width, hint))


def make_timeline(trace: TraceData, steps: Iterable[int] | None, width: int | None, hint: str) -> list[TextLine]:
    """Return the lines of a timeline.

    Args:
        trace: the trace.
        steps: the steps to show, counted from 0; all if None.
        width: the longest line, in columns; that of the terminal if None.
        hint: how to see the steps that are left out; shown if there are any.

    Raises:
        IndexError: the trace has no such step.
        TypeError: ``steps`` or ``width`` does not consist of whole numbers.
        ValueError: ``width`` is less than ``MIN_WIDTH``.
    """
    chosen, columns = _check_steps(trace, steps), _check_width(width)
    if not trace.rows:
        return [TextLine(line, "title") for line in wrap(repr(trace), columns)]
    writer = _Writer(trace, chosen, columns)
    lines = [*_write_title(trace, columns), *writer.write_table()]
    hints = [hint] if len(chosen) < len(trace.rows) else []
    if writer.has_shortened:
        text = _(
            "… marks text that was cut to fit into lines of {width} characters: a greater width, such as {more}, shows "
            "more."
        )
        hints.append(text.format(width=columns, more=2 * columns))
    return lines + [TextLine(line, "hint") for text in hints for line in wrap(text, columns)]


def _check_steps(trace: TraceData, steps: object) -> Sequence[int]:
    """Return the steps in order and without repetitions; all if ``steps`` is None."""
    if steps is None:
        return range(len(trace.rows))
    if not isinstance(steps, Iterable):
        text = _("steps are whole numbers counted from 0, such as range(10), not {kind}.")
        raise TypeError(text.format(kind=describe_type(steps)))
    return sorted({trace.at(step) for step in steps})


def _check_width(width: object) -> int:
    """Return the longest line, in columns."""
    if width is None:
        return max(find_terminal_width(), MIN_WIDTH)
    if isinstance(width, bool) or not isinstance(width, int):
        raise TypeError(_(_WRONG_WIDTH).format(least=MIN_WIDTH, width=describe_type(width)))
    if width < MIN_WIDTH:
        raise ValueError(_(_WRONG_WIDTH).format(least=MIN_WIDTH, width=width))
    return width


def _write_title(trace: TraceData, width: int) -> list[TextLine]:
    """Write what the trace holds, and its notes on what could not be observed."""
    texts = [_("Trace: {counts}.").format(counts=describe_counts(trace)), *map(make_printable, trace.notes)]
    return [TextLine(line, "title") for text in texts for line in wrap(text, width)]


class _Writer:
    """Lays out the rows of one timeline in columns."""

    def __init__(self, trace: TraceData, steps: Sequence[int], width: int) -> None:
        self._trace, self._width = trace, width
        self._has_pass = len(trace.lookup.passes) > 1
        head = [_("step"), _("pass"), _("what"), _("name"), _("before → after"), _("hook at")]
        self._head = self._arrange(head)
        self._rows = [self._make_row(trace.steps[step]) for step in steps]
        self.has_shortened = False
        """Whether a cell had to be shortened."""

    def _arrange(self, cells: Sequence[str]) -> tuple[str, ...]:
        """Leave out the number of the pass if there is only one pass."""
        return tuple(cells) if self._has_pass else (cells[0], *cells[2:])

    def write_table(self) -> list[TextLine]:
        """Write the head, the steps, and between them the headings of passes and what is left out."""
        widths = self._fit_columns()
        lines = [TextLine(self._lay_out(self._head, widths), "head")]
        last, last_pass, begun = -1, -1, set[int]()
        for row in self._rows:
            lines += self._write_omission(last, row.step)
            last = row.step
            pass_id = self._trace.rows[last].pass_id
            if pass_id != last_pass:
                lines.append(TextLine(self._write_heading(pass_id, pass_id in begun), "pass"))
                begun.add(pass_id)
                last_pass = pass_id
            lines.append(TextLine(self._lay_out(row.cells, widths), row.role))
        return lines + self._write_omission(last, len(self._trace.rows))

    def _write_omission(self, last: int, following: int) -> list[TextLine]:
        """Write which steps between two steps, counted from 0, are left out; nothing if there are none."""
        count = following - last - 1
        if not count:
            return []
        text = _("… step {first} is left out") if count == 1 else _("… steps {first} to {last} are left out ({count})")
        return [TextLine(text.format(count=f"{count:,}", first=f"{last + 2:,}", last=f"{following:,}"), "hint")]

    def _write_heading(self, pass_id: int, is_begun: bool) -> str:
        """Write the heading of a pass: at what it begins, or that it goes on after a pass inside it."""
        trace = self._trace
        numbers = {"number": format_pass_number(trace, pass_id), "index": f"{pass_id + 1:,}"}
        numbers["count"] = f"{len(trace.roots):,}"
        if pass_id >= len(trace.roots):
            return _("Calls that no backward pass follows") if trace.roots else _("No backward pass")
        if is_begun:
            text = _("Pass {number} goes on") if trace.lacks_passes else _("Pass {number} of {count} goes on")
            return text.format(**numbers)
        roots = [trace.name(*root) for root in trace.roots[pass_id]]
        names = join_list(roots[:_MAX_ITEMS] + ([_say_more(roots)] if len(roots) > _MAX_ITEMS else []))
        text = (
            _("Pass {number} ({index} of {count} in this trace): backward of {on}")
            if trace.lacks_passes
            else _("Pass {number} of {count}: backward of {on}")
        )
        heading = text.format(on=make_printable(names), **numbers)
        if len(heading) > self._width:
            self.has_shortened = True
        return truncate(heading, self._width)

    # -- rows

    def _make_row(self, step: Step) -> _Row:
        call = step.row.call
        owner = call if step.node is None or call is not None else self._trace.owners.get(step.node)
        depth = sum(1 for _ignored in iter_enclosing_calls(self._trace, owner)) - (step.kind in ("call", "forward"))
        where = "" if step.hook is None or not step.hook.file else f"{step.hook.file}:{step.hook.line}"
        cells = [
            str(step.index + 1),
            format_pass_number(self._trace, step.pass_id),
            name_of_kind(step.kind) if step.kind in HOOK_KINDS else _(_KIND_NAMES[step.kind]),
            " " * _INDENT * min(depth, _MAX_DEPTH) + make_printable(self._name_subject(step, owner)),
            make_printable(_format_change(step)),
            make_printable(where),
        ]
        role: Role = "hook" if step.hook is not None or step.kind in HOOK_KINDS else "step"
        is_fault = step.kind in ("exception", "unobserved", "unknown_hook", "aliased")
        return _Row(step.index, self._arrange(cells), "fault" if is_fault else role)

    def _name_subject(self, step: Step, owner: int | None) -> str:
        """Name what a step is about: with its hook, and for a node the module that made it."""
        if step.hook is not None:
            return _("{hook} on {on}").format(hook=step.hook.label, on=step.on)
        around = self._trace.lookup.steps_around_updates.get(step.index)
        if around is not None:  # this hook has its line after those of what it did
            hook = self._name_subject(self._trace.steps[around], None)
            return _("{on} in {module}").format(on=step.on, module=hook)
        if owner is None or step.row.call is not None:
            return step.on
        module = self._trace.plain_call(owner)
        return step.on if step.on.startswith(module) else _("{on} in {module}").format(on=step.on, module=module)

    # -- columns

    def _fit_columns(self) -> list[int]:
        """Return the widths of the columns: as wide as their cells or, to fit the line, narrower.

        The place of a hook is shortened first, since its end says most; then the wider one of name and change.
        """
        columns = zip(self._head, *(row.cells for row in self._rows), strict=True)
        widths = [min(max(map(measure_width, column)), self._width) for column in columns]
        name, change, where = range(len(widths) - 3, len(widths))
        surplus = sum(widths) + len(_GAP) * (len(widths) - 1) - self._width
        while surplus > 0:
            wider = max(name, change, key=widths.__getitem__)
            shortened = where if widths[where] > _MIN_PLACE or widths[wider] <= _MIN_CELL else wider
            if widths[shortened] <= _MIN_CELL:
                break
            widths[shortened] -= 1
            surplus -= 1
        return widths

    def _lay_out(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        number, *others, where = cells
        first, *middle, last = widths
        texts = [number.rjust(first)]
        texts += [pad(truncate(text, width), width) for text, width in zip(others, middle, strict=True)]
        if len(where) > last:
            where = f"…{where[1 - last :]}"  # the end of a path says more than its start
        self.has_shortened |= any(measure_width(cell) > width for cell, width in zip(cells, widths, strict=True))
        return _GAP.join([*texts, where]).rstrip()


def _say_more(items: Sequence[object]) -> str:
    return _("… {count} more").format(count=f"{len(items) - _MAX_ITEMS:,}")


def _format_change(step: Step) -> str:
    """Write what a step began and ended with, and what a hook did to it; for a fault, what went wrong."""
    row = step.row
    if row.error or row.region or row.note is not None:
        return row.error or row.region or ("" if row.note is None else row.note.text)
    can_be_none = step.kind in _KINDS_WITH_NONE
    is_change = step.before is not None and step.after is not None and step.effect not in ("kept", "ran")
    is_change = is_change or (can_be_none and (step.before is None) != (step.after is None))
    sides = zip((step.before, step.after), row.labels, strict=True)
    nothing = "None" if can_be_none else ""
    before, after = (_format_briefly(values, labels, is_change) if values else nothing for values, labels in sides)
    change = " → ".join(filter(None, [before, after])) if is_change else before or after
    if step.kind == "optimizer_step":
        return describe_parameters(change)
    if step.kind in ("unscale", "rescale"):
        return _("scale {change}").format(change=change)
    scaled = "" if step.scale is None else _("scaled by {scale}").format(scale=format_scale(step.scale))
    return join_list([change, name_of_effect(step.effect), scaled])


_KINDS_WITH_NONE = ("compute", "tensor_hook", "full_backward_pre_hook", "full_backward_hook")
"""Kinds of step in which a missing gradient is the None that torch passed."""


def _format_briefly(values: Values, labels: tuple[str, ...], is_change: bool) -> str:
    """Write a tensor, or the first ones of several, in few characters; nothing if there is none.

    A change has two sides, so each gets less room, and no shapes.
    """
    if not values:
        return ""
    if isinstance(values, Value):
        return values.text(_SMALL_ROOM if is_change else _ROOM, shape=not is_change, digits=_DIGITS)
    texts = [
        "None" if value is None else value.text(_SMALL_ROOM, shape=not is_change, digits=_DIGITS)
        for value in values[:_MAX_ITEMS]
    ]
    if len(labels) > 1:
        texts = [f"{x}={text}" for x, text in zip(name_tensors(labels), texts, strict=False)]
    more = [_say_more(values)] if len(values) > _MAX_ITEMS else []
    line = join_list(texts + more)
    return line if len(values) == 1 or len(labels) > 1 else f"({line})"
