"""The parameters that got no gradient, and where the graph is cut."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hookviz.analysis.findings.parameters.cutting_code import (
    FUNCTIONS,
    find_conversion,
    find_converted,
    find_innermost,
    has_only_reparameterised,
    iter_file_trees,
    leaves_torch,
)
from hookviz.analysis.findings.parameters.none_gradients import NoneGradients
from hookviz.analysis.findings.parameters.places import CUTS, FOLLOW_OPS, LIKELY_PLACES, Place, PlaceFinder, follows_ops
from hookviz.support.messages import MAX_NAMED, N_, _, join_first, join_list, join_sentences
from hookviz.support.source_code import CodePlace, describe_place
from hookviz.trace import MODULE_HOOK_KINDS, CutKind, CutRow, Hook, MissingRow, TraceData
from hookviz.trace.hooks import shared_label

_CUTS = {
    "graph": N_("{op} returns a tensor without a graph: no gradient goes back through it."),
    "numbers": N_("{op} returns plain numbers, which have no graph: no gradient goes back through them."),
    "frozen": N_("{op} switches requires_grad off: what is computed afterwards has no graph that leads back."),
    "function": N_(
        "{op} runs in the forward of an autograd.Function, and its result has no graph: no gradient "
        "goes back through it."
    ),
    **dict.fromkeys(
        ("no_grad", "inference"),
        N_(
            "{op} runs while PyTorch records no graph, as in torch.no_grad() or inference_mode(): no gradient goes "
            "back through it."
        ),
    ),
    "checkpoint": N_(
        "{op} runs in a reentrant checkpoint none of whose inputs requires grad, so PyTorch records "
        "no graph: no gradient goes back through it."
    ),
}


MAX_CUTS = 3
"""How many cuts a sentence names; a parameter may be cut off on several paths."""
_WITHOUT_GRAPH: tuple[CutKind, ...] = ("no_grad", "inference", "checkpoint")
"""The kinds of cuts that are places of their own: nothing in them has a graph."""


def _place_of_cuts(trace: TraceData, indexes: tuple[int, ...]) -> Place:
    """Return the place of the cuts with these indexes: one sentence for each line, the first step.

    What ran without a graph counts only if nothing else cuts: a rollout, a target or an evaluation runs so on purpose.
    """
    all_rows = [trace.cut_rows[index] for index in indexes]
    rows = [row for row in all_rows if not _is_without_graph(row)] or all_rows
    sentences = list(dict.fromkeys(_explain_cut(row) for row in rows))
    sentences += dict.fromkeys(sentence for row in rows if (sentence := _explain_conversion(trace, row)))
    rest = _("{count} more ops cut the graph.").format(count=len(sentences) - MAX_CUTS)
    steps = [row.step for row in rows if row.step is not None]
    lines = {None if row.line is None else CodePlace(row.file, row.line) for row in rows}
    code = lines.pop() if len(lines) == 1 else None
    text = join_sentences([*sentences[:MAX_CUTS], *([rest] if sentences[MAX_CUTS:] else [])])
    kinds = {row.kind for row in rows if _is_without_graph(row)}
    return Place(kinds.pop() if len(kinds) == 1 else "op", text, min(steps, default=None), code)


def _is_without_graph(row: CutRow) -> bool:
    """Return whether an op ran where nothing gets a graph; the ``sample`` of a distribution sees to that itself."""
    return row.kind in _WITHOUT_GRAPH and ".sample(" not in (row.text or "")


def _explain_conversion(trace: TraceData, row: CutRow) -> str:
    """Say that the line of an op makes numbers of its result, which cuts as well; empty if it does not."""
    place = None if row.line is None or row.kind != "graph" else CodePlace(row.file, row.line)
    call = _find_conversion(trace, place, row.text or row.op)
    text = _("{code} makes numbers of that, which have no graph either.")
    return "" if call is None or ast.unparse(call) == row.text else text.format(code=ast.unparse(call))


def _explain_cut(row: CutRow) -> str:
    code = row.text or row.op
    where = describe_place(row.file, row.line)
    op = _("{code} in {where},").format(code=code, where=where) if where else code
    return _(_CUTS[row.kind]).format(op=op)


class MissingGradient(NamedTuple):
    """Parameters that require grad and that no gradient reached, with the place where the graph is cut."""

    parameters: tuple[str, ...]
    """Their names; all are cut off at the same place."""
    place: Place
    advice: str
    """What to do."""


_NO_CUT_SEEN = N_("No op that cuts was seen on the way, but Python and numpy are not followed.")
_LEAVES_TORCH = N_(
    "Numbers of Python and numpy, and new tensors made from them, have no graph: look whether the loss goes through "
    "that code, and compute it with tensors instead."
)
_REMOVE = N_("Remove the cut, unless it is there to stop gradients.")
_ADVICE = {
    "hook": N_("Return None from the hook, or an output that keeps its graph."),
    "checkpoint": N_("Use checkpoint(..., use_reentrant=False), or give the checkpoint an input that requires grad."),
    "no_grad": N_("If they should be trained, compute this outside of no_grad()."),
    "inference": N_("If they should be trained, call the module outside of inference_mode()."),
    "frozen": N_("If they should be trained, unfreeze them before the module is called."),
    "unnamed": N_("If they should be trained, use them in the forward; otherwise take them out of the module."),
}
"""Place → what to do."""


def list_missing_gradients(trace: TraceData) -> list[MissingGradient]:
    """List the parameters without a gradient; those that are cut off at the same place, or by the same line, together.

    If several calls lead to the same line, the place is that of the last one, which is the nearest to the loss.
    """
    gradients = NoneGradients(trace)
    behind_none = ((name, gradients.place(step)) for name, step in gradients.unreached.items() if step is not None)
    found = [*(_group_by_cause(_find_rows(trace)) if trace.missing_rows else ()), *_group_by_cause(behind_none)]
    return [MissingGradient(tuple(names), place, advise_on_cut(trace, place)) for names, place in found]


def _group_by_cause(found: Iterable[tuple[str, Place]]) -> list[tuple[list[str], Place]]:
    """Group the names of parameters by the line that cuts them off, each with the last of its places."""
    names: dict[object, list[str]] = {}
    places: dict[object, Place] = {}
    for name, place in found:
        cause = place if place.code is None else place.code
        names.setdefault(cause, []).append(name)
        places[cause] = max(place, places.get(cause, place), key=lambda one: -1 if one.step is None else one.step)
    return [(names[cause], place) for cause, place in places.items()]


def advise_on_cut(trace: TraceData, place: Place) -> str:
    """Say what to do about a place where the graph is cut; empty if nothing is known."""
    if ".sample(" in place.sentence and has_only_reparameterised(_read_around(trace, place.code)):
        return _("The sample() of a distribution enters no_grad() itself: rsample() keeps the graph.")
    if place.key == "either" or (place.key == "op" and place.code is None):
        return _("Look which of these is not there to stop gradients, and remove that one.")
    follows = follows_ops(trace)
    if place.key in ("between", "inside") and place.code is None and not follows:
        return _(FOLLOW_OPS)
    if place.key in CUTS and place.is_proven and place.key not in _ADVICE:
        return _advise_on_conversion(_find_conversion(trace, place.code, place.sentence))
    if place.key == "unused":
        unused = N_("No op that cuts was seen on the way: look whether the forward uses them.")
        return _(unused if follows else FOLLOW_OPS)
    if place.key in LIKELY_PLACES and leaves_torch(place.sentence):
        return join_sentences([_(_NO_CUT_SEEN) if follows else "", _(_LEAVES_TORCH)])
    if place.key in LIKELY_PLACES or (place.is_likely and place.key not in _ADVICE):
        if follows:
            return join_sentences([_(_NO_CUT_SEEN), _("Look whether the output goes through them, or is not used.")])
        guess = _("Remove the cut, if that line is it, unless it is there to stop gradients.")
        return join_sentences(["" if place.code is None else guess, _(FOLLOW_OPS)])
    return _(_ADVICE[place.key]) if place.key in _ADVICE else ""


def _advise_on_conversion(call: ast.Call | None) -> str:
    """Say what to do about code that cuts; of numbers, none of the ops on the way is to be taken out alone."""
    if call is None:
        return _(_REMOVE)
    tensor, code = find_converted(call), ast.unparse(call)
    text = _("Write {tensor} instead of {code}, unless it is there to stop gradients.")
    return text.format(tensor=tensor, code=code) if tensor else _(_LEAVES_TORCH)


def _find_conversion(trace: TraceData, code: CodePlace | None, sentence: str) -> ast.Call | None:
    """Return the call in a line that makes numbers of what code in a sentence returns; None if there is none."""
    if code is None:
        return None
    calls = (find_conversion(tree, code.line, sentence) for _source, tree in iter_file_trees(trace, code.file))
    return next((call for call in calls if call is not None), None)


def _read_around(trace: TraceData, code: CodePlace | None) -> list[str]:
    """Return the text of the function around a line; the whole recorded program if it is in none."""
    texts = [source.text for source in trace.sources]
    if code is None:
        return texts
    trees = (tree for _source, tree in iter_file_trees(trace, code.file))
    found = (find_innermost(tree, FUNCTIONS, code.line) for tree in trees)
    around = next((function for function in found if function is not None), None)
    return texts if around is None else [ast.unparse(around)]


def _find_rows(trace: TraceData) -> Iterator[tuple[str, Place]]:
    """Yield the names of parameters that are in no graph, and where that is cut."""
    finder = PlaceFinder(trace)
    by_path: dict[object, list[MissingRow]] = {}
    for row in _list_missing(trace):
        by_path.setdefault(row.cuts or (row.owner, row.module, row.frozen), []).append(row)
    for rows in by_path.values():
        place = _place_row(finder, rows[0])
        yield from ((row.name, finder.explain_unused(place, row)) for row in rows)


def _list_missing(trace: TraceData) -> list[MissingRow]:
    """List the rows of parameters, but for those whose place another tensor took that did get a gradient."""
    names = trace.lookup.leaf_names
    reached = {names[row.node] for row in trace.rows if row.kind == "accumulate" and row.node in names}
    return [row for row in trace.missing_rows if row.name not in reached]


def _place_row(finder: PlaceFinder, row: MissingRow) -> Place:
    if not row.cuts:
        return finder.find(row.owner, row.module, row.frozen)
    without_graph = finder.find_without_graph(row.module)
    if without_graph is not None:
        return without_graph
    place = _place_of_cuts(finder.trace, row.cuts)
    return place if place.key != "op" else finder.weigh_cuts(place, row.owner, row.module)


def join_names(names: tuple[str, ...], many: str = N_("{count} parameters of {on}"), one: str = "{on}") -> str:
    """Join the names of parameters; of many, name the modules that hold them, and how many each holds.

    ``many`` and ``one`` are the texts that say so of something else than parameters: of several, and of a single one.

    >>> join_names(("net.stem.weight", *(f"net.blocks.{i}.weight" for i in range(4))))
    'net.stem.weight, 4 parameters of net.blocks'
    """
    if len(names) <= MAX_NAMED:
        return join_list([one.format(on=name) for name in names])
    paths = [name.split(".") for name in names]
    for depth in range(max(map(len, paths)), 0, -1):
        groups = Counter(".".join(path[:depth]) for path in paths)
        if len(groups) <= MAX_NAMED:
            return join_list([_describe_holder(names, *group, many, one) for group in groups.items()])
    return join_first([one.format(on=name) for name in names])


def join_owners(hooks: Sequence[Hook], names: Iterable[str]) -> str:
    """Join the names of what equal hooks are on: modules, what modules returned, or other tensors."""
    owners = tuple(dict.fromkeys(names))
    if hooks[0].kind in MODULE_HOOK_KINDS:
        return join_names(owners, N_("{count} modules in {on}"))
    output = _("the output of {on}")
    before, _on, after = output.partition("{on}")
    returning = tuple(name.removeprefix(before).removesuffix(after) for name in owners)
    if all(output.format(on=module) == name for module, name in zip(returning, owners, strict=True)):
        return join_names(returning, N_("{count} outputs of modules in {on}"), output)
    if any(" " in name for name in owners):  # what these words begin with is no module
        return join_first(owners)
    return join_names(owners, N_("{count} tensors in {on}"))


def tell_same(hooks: Sequence[Hook]) -> list[str]:
    """Say that what is said of the first of some equal hooks holds for the others, too."""
    if not hooks[1:]:
        return []
    others = join_owners(hooks, (hook.on for hook in hooks[1:]))
    return [_("The same holds for {hook} on {others}.").format(hook=shared_label(hooks), others=others)]


def _describe_holder(names: tuple[str, ...], prefix: str, count: int, many: str, one: str) -> str:
    """Describe what has names that begin with ``prefix``; a single one by its name."""
    if count == 1:
        single = next(name for name in names if name == prefix or name.startswith(f"{prefix}."))
        return one.format(on=single)
    return _(many).format(count=f"{count:,}", on=prefix)
