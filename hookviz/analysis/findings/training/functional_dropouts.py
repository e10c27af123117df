"""Find functional dropouts that do not know the mode, and drop numbers in an evaluation, too."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.parameters.call_code import CallCode, Region
from hookviz.analysis.findings.parameters.cutting_code import get_last_name, parse_source
from hookviz.analysis.findings.training.modes import name_modules
from hookviz.analysis.findings.training.program_calls import CodePlace, put_line
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _
from hookviz.trace import TraceData

_FUNCTIONAL = ("F", "functional")
"""Names under which a program knows ``torch.nn.functional``."""


def find_functional_dropouts(facts: TrainingFacts) -> Iterator[Finding]:
    """Find functional dropouts that do not know the mode, in the forward of modules that ran in evaluation mode."""
    trace = facts.trace
    steps: dict[int, int] = {}
    for call, step in facts.evaluated_calls.items():
        steps.setdefault(trace.calls[call].module, step)
    code = CallCode(trace)
    found: dict[CodePlace, dict[int, int]] = {}
    for module, step in steps.items():
        forward = code.find_forward(module)
        for place in _list_droppings(trace, code.follow([forward])) if forward is not None else ():
            found.setdefault(place, {})[module] = step
    for place, modules in found.items():
        sentence = _(
            "{on} drops numbers in evaluation mode, too: its forward calls dropout without training=self.training, "
            "and torch.nn.functional.dropout drops unless it is told not to."
        ).format(on=name_modules(trace, modules))
        finding = Finding(min(modules.values()), "always_drops", sentence, "remark")
        advice = _("Pass training=self.training, or use torch.nn.Dropout.")
        yield put_line(replace(finding, advice=advice), place, "step")


def _list_droppings(trace: TraceData, regions: Iterable[Region]) -> Iterator[CodePlace]:
    """Yield the lines of functional dropouts that are not told the mode; none if the code asks for the mode itself."""
    for index, lines in regions:
        source = trace.sources[index]
        tree, shift = parse_source(source.text), source.line - 1
        nodes = [] if tree is None else list(ast.walk(tree))
        inside = [node for node in nodes if lines.first <= getattr(node, "lineno", 0) + shift <= lines.last]
        if any(isinstance(node, ast.Attribute) and node.attr == "training" for node in inside):
            continue
        for node in inside:
            if isinstance(node, ast.Call) and _drops_always(node):
                yield CodePlace(source.file, node.lineno + shift)


def _drops_always(call: ast.Call) -> bool:
    """Return whether a call is a functional dropout of some numbers that is not told the mode."""
    function = call.func
    if not isinstance(function, ast.Attribute) or get_last_name(function.value) not in _FUNCTIONAL:
        return False
    is_dropout = function.attr.rstrip("123d") in ("dropout", "alpha_dropout", "feature_alpha_dropout")
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    is_told = len(call.args) > 2 or not named.keys().isdisjoint(("training", None))
    rate = call.args[1] if len(call.args) > 1 else named.get("p")
    has_stars = any(isinstance(argument, ast.Starred) for argument in call.args)
    drops = not (isinstance(rate, ast.Constant) and rate.value == 0)
    return is_dropout and drops and not is_told and not has_stars
