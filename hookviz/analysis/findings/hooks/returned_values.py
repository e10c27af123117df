"""Find hooks that return something of another shape than they were given, zeros, or not what they computed."""

import ast
from collections.abc import Iterable, Iterator

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.firings import group_firings, iter_firings, list_fired, name_fired
from hookviz.analysis.findings.hooks.hook_inputs import loses_rows
from hookviz.analysis.findings.hooks.program_text import (
    find_returning_line,
    list_argument_names,
    list_given,
    parse_hook,
)
from hookviz.support.definitions import is_value, list_names, list_returned
from hookviz.support.messages import _
from hookviz.support.source_code import place_of
from hookviz.trace import Hook, Step, TraceData
from hookviz.trace.hook_facts import HookKind
from hookviz.trace.hooks import shared_label
from hookviz.trace.values import Value

_KINDS: tuple[HookKind, ...] = (
    "tensor_hook",
    "forward_pre_hook",
    "forward_hook",
    "full_backward_pre_hook",
    "full_backward_hook",
)
"""The kinds of hooks whose returned value takes the place of something."""
# fmt: off
_COMPUTING = frozenset({
    "abs", "add", "clamp", "clamp_max", "clamp_min", "clip", "detach", "div", "dropout", "exp", "full_like", "gelu",
    "layer_norm", "leaky_relu", "log", "log_softmax", "masked_fill", "mul", "nan_to_num", "neg", "normalize",
    "ones_like", "pow", "relu", "renorm", "round", "sigmoid", "sign", "silu", "softmax", "sqrt", "square", "sub",
    "tanh", "to", "zeros_like",
})
# fmt: on
"""Methods and functions that make a new tensor, and do nothing else."""
_YIELDS = (ast.Yield, ast.YieldFrom)
_UNCLEAR = (ast.FunctionDef, ast.Lambda, ast.For, ast.While, ast.Global, ast.Nonlocal, ast.Try, *_YIELDS)
"""Code in a function because of which it is not clear whether it uses a value."""
_OWNERS = frozenset({"torch", "F", "functional", "nn.functional", "torch.nn.functional"})
"""What such functions are called through."""


def list_reshaped_outputs(trace: TraceData) -> list[Finding]:
    """List the forward hooks that put a tensor of another shape in the place of the output; the first time of each."""
    found: dict[int, Finding] = {}
    for number, index, _row in iter_firings(trace, "forward_hook"):
        step = trace.steps[number]
        if index not in found and _has_other_shape(step) and not loses_rows(step):
            found[index] = _make_reshaped(trace, step, index)
    return list(found.values())


def _has_other_shape(step: Step) -> bool:
    before, after = step.before, step.after
    is_tensor = isinstance(before, Value) and isinstance(after, Value)
    return step.row.effect == "replaced" and is_tensor and before.shape != after.shape


def _make_reshaped(trace: TraceData, step: Step, index: int) -> Finding:
    hook = trace.hook(index)
    assert isinstance(step.before, Value) and isinstance(step.after, Value)
    names = {"hook": hook.label, "on": hook.on, "before": step.before.shape, "after": step.after.shape}
    sentence = _("{hook} on {on} returned a tensor of shape {after} in the place of the output of shape {before}.")
    advice = _("A hook that should only look returns nothing.")
    finding = Finding(step.index, "reshaped", sentence.format(**names), "remark", advice=advice, hooks=(hook,))
    return put_line(finding, *find_returning_line(hook, trace.hook_rows[index].registered_at))


def list_zeroing_hooks(trace: TraceData, others: Iterable[Finding]) -> list[Finding]:
    """List the tensor hooks that put zeros in the place of a gradient other than 0, in each of several passes.

    ``others`` are the other findings: one that begins at such a step says it already.
    """
    explained = {finding.step for finding in others}
    return [
        _make_zeroing(trace, index, steps)
        for index, steps in group_firings(trace, ["tensor_hook"]).items()
        if len({trace.rows[step].pass_id for step in steps}) > 1
        and all(_sets_zero(trace.steps[step]) for step in steps)
        and explained.isdisjoint(steps)
    ]


def _sets_zero(step: Step) -> bool:
    before, after = step.before, step.after
    if step.row.effect not in ("edited", "replaced") or not isinstance(before, Value) or not isinstance(after, Value):
        return False
    return bool(before.norm) and after.norm == 0


def _make_zeroing(trace: TraceData, index: int, steps: list[int]) -> Finding:
    passes = tuple(dict.fromkeys(trace.rows[step].pass_id for step in steps))
    text = _("{hook} on {on} put zeros in the place of the gradient, each of the {count} times that it fired.")
    hooks = list_fired(trace, steps)
    names = {**name_fired(hooks), "hook": shared_label(hooks)}
    sentence = text.format(**names, count=f"{len(steps):,}")
    finding = Finding(steps[0], "zero", sentence, "remark", passes, hooks=hooks)
    return put_line(finding, *find_returning_line(hooks[0], trace.hook_rows[index].registered_at))


# -- values that are computed and not returned


def list_unreturned_values(trace: TraceData) -> list[Finding]:
    """List the functions that left what they were given as it is, though they compute something new, and return None.

    It is certain if the value is lost: no code reads it afterwards.
    """
    found = []
    for index, steps in group_firings(trace, _KINDS).items():
        idle = [step for step in steps if trace.rows[step].effect in ("kept", "ran")]
        statement = _find_lost_value(trace.hook(index)) if idle else None
        if statement is not None:
            found.append(_describe_lost(trace, idle, statement))
    return found


def _describe_lost(trace: TraceData, steps: list[int], statement: ast.stmt) -> Finding:
    hooks = list_fired(trace, steps)
    hook = hooks[0]
    names = name_fired(hooks)
    advice = _("Return the new value from {hook}.")
    if hook.kind.startswith("full_backward"):
        advice = _("Return the new value from {hook}, in a tuple with an item for each gradient.")
    finding = Finding(
        steps[0],
        "unreturned",
        _("{hook} on {on} computes a new value and returns nothing: it changes nothing.").format(**names),
        "warning",
        cause=_("{code} makes a new tensor, and nothing uses it.").format(code=ast.unparse(statement)),
        advice=advice.format(**names),
        hooks=hooks,
    )
    return put_line(finding, place_of(statement, hook))


def _find_lost_value(hook: Hook) -> ast.stmt | None:
    """Return the statement of a hook that computes a new value from an argument, if the value is lost."""
    function = parse_hook(hook)
    if not isinstance(function, ast.FunctionDef) or hook.line is None or any(map(is_value, list_returned(function))):
        return None
    if any(isinstance(node, _UNCLEAR) for node in ast.walk(function) if node is not function):
        return None
    given = list_given(hook)
    tensors = given if hook.kind == "tensor_hook" else given[1:]  # not the module
    return next(_list_lost(function, list_argument_names(function, tensors)), None)


def _list_lost(function: ast.FunctionDef, names: set[str]) -> Iterator[ast.stmt]:
    """Yield the statements whose new value is dropped at once, or kept in a variable that nothing reads afterwards."""
    loads = [node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    for node in ast.walk(function):
        if isinstance(node, ast.Expr) and _makes_new(node.value, names):
            yield node
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, end = node.targets[0].id, (node.end_lineno or node.lineno, node.end_col_offset or 0)
            reads_it = name in list_names(node.value)
            is_lost = all(one.id != name or (one.lineno, one.col_offset) < end for one in loads)
            if is_lost and (reads_it or name not in names) and _makes_new(node.value, names):
                yield node


def _makes_new(value: ast.expr, names: set[str]) -> bool:
    """Whether an expression computes with an argument, or makes a tuple or list whose items do."""
    match value:
        case ast.BinOp() | ast.UnaryOp():
            return _uses(value, names)
        case ast.IfExp(body=body, orelse=orelse):
            return _makes_new(body, names) or _makes_new(orelse, names)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return any(_makes_new(item, names) for item in items)
        case ast.GeneratorExp(elt=item) | ast.ListComp(elt=item):
            return _makes_new(item, names.union(*(list_names(one.target) for one in value.generators)))
        case ast.Call(func=ast.Name(id="tuple" | "list"), args=[item]):
            return _makes_new(item, names)
    return _computes(value, names)


def _uses(value: ast.AST, names: set[str]) -> bool:
    """Return whether a formula computes with an argument itself, or an item of it: not with its shape, say."""
    if isinstance(value, ast.BinOp):
        return _uses(value.left, names) or _uses(value.right, names)
    if isinstance(value, ast.UnaryOp):
        return _uses(value.operand, names)
    while isinstance(value, ast.Subscript):
        value = value.value
    return isinstance(value, ast.Name) and value.id in names


def _computes(value: ast.expr, names: set[str]) -> bool:
    """Whether an expression calls a method of an argument, or a function of torch with it, that makes a new tensor."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    owner: ast.expr = value.func.value
    if value.args and ast.unparse(owner) in _OWNERS:
        owner = value.args[0]
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    is_kept = any(keyword.arg in ("out", "inplace") for keyword in value.keywords)
    return value.func.attr in _COMPUTING and isinstance(owner, ast.Name) and owner.id in names and not is_kept
