"""Code that can cut a graph: detach, no_grad, conversions to numbers, ops without a gradient."""

import ast
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from textwrap import dedent
from typing import NamedTuple, TypeVar

from hookviz.support.source_code import CodePlace
from hookviz.trace import SourceRow, TraceData

CUTTING_METHODS = frozenset({
    "detach", "detach_", "item", "tolist", "numpy", "argmax", "argmin", "argsort", "long", "int", "bool", "nonzero",
    "sign", "multinomial", "bernoulli", "sample",
})  # fmt: skip
"""Methods and functions whose result has no history, or none that leads back."""
_REPARAMETERISED = frozenset({
    "Beta", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Exponential", "FisherSnedecor", "Gamma", "Gumbel",
    "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "MultivariateNormal", "Normal", "OneHotCategoricalStraightThrough", "Pareto",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "Uniform", "Weibull", "Wishart",
})  # fmt: skip
"""The distributions whose ``sample()`` switches the graph off, and whose ``rsample()`` keeps it."""
_NOT_REPARAMETERISED = frozenset({
    "Bernoulli", "Binomial", "Categorical", "Geometric", "LKJCholesky", "MixtureSameFamily", "Multinomial",
    "NegativeBinomial", "OneHotCategorical", "Poisson", "VonMises",
})  # fmt: skip
_CONVERSIONS = ("item", "tolist", "numpy", "tensor", "as_tensor", "from_numpy")
"""The functions and methods that make numbers of tensors, or tensors of numbers; beside ``float``."""
_LEAVING = re.compile(rf"\b(({'|'.join(_CONVERSIONS)})|(?<!\.)float)\(")
_NUMPY_CONVERSIONS = ("array", "asarray")
_MAKING_TENSORS = ("tensor", "as_tensor", "from_numpy")
_KEEPING_NUMBERS = ("detach", "cpu", "clone", "numpy", "tolist", "item")
"""Methods of a tensor whose result has the same numbers."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Statement = TypeVar("Statement", bound=ast.stmt)
CUTTING_FUNCTIONS = frozenset({"tensor", "as_tensor", "from_numpy", "Parameter", "no_grad", "inference_mode"})
_REACHING = frozenset({
    "parameters", "named_parameters", "children", "named_children", "modules", "named_modules", "state_dict",
    "__dict__", "vars", "attrgetter",
})  # fmt: skip
"""The names by which code gets parameters or parts of a module, whatever their own names are."""
KNOWN_ROOTS = frozenset({"torch", "F", "nn", "functional", "math", "np", "numpy", "optim"})
"""The names of libraries whose functions cut only if they are named here."""
KNOWN_CALLS = frozenset({
    "abs", "append", "backward", "bool", "chunk", "clamp", "clone", "contiguous", "dict", "dim", "double", "enumerate",
    "eval", "exp", "expand", "extend", "flatten", "float", "format", "forward", "int", "isinstance", "items", "keys",
    "len", "list", "log", "matmul", "max", "mean", "min", "mul", "norm", "permute", "pow", "print", "range",
    "register_hook", "relu", "repeat", "reshape", "rsample", "set", "sigmoid", "size", "softmax", "split", "sqrt",
    "squeeze", "step", "str", "sum", "super", "t", "tanh", "to", "train", "transpose", "tuple", "unsqueeze", "update",
    "values", "view", "zero_grad", "zip",
})  # fmt: skip
"""Functions and methods that cut nothing."""
TENSOR_METHODS = frozenset({
    "addmm", "amax", "amin", "bfloat16", "bmm", "broadcast_to", "clamp_max", "clamp_min", "clip", "cos", "cpu", "cuda",
    "cumprod", "cumsum", "div", "dot", "element_size", "erf", "expand_as", "expm1", "flip", "half", "index_select",
    "is_contiguous", "log10", "log1p", "log2", "log_softmax", "logsumexp", "masked_fill", "masked_select", "maximum",
    "median", "minimum", "mm", "movedim", "mv", "narrow", "neg", "numel", "outer", "pin_memory", "prod", "reciprocal",
    "repeat_interleave", "requires_grad_", "reshape_as", "retain_grad", "roll", "rsqrt", "scatter_add", "sin", "square",
    "std", "sub", "swapaxes", "topk", "tril", "triu", "type_as", "unbind", "unflatten", "unfold", "var",
    "view_as",
})  # fmt: skip
"""Methods of a tensor that cut nothing, and whose names other objects seldom use; the program may define them."""


UNSEEN = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.BoolOp)
"""The expressions of which a part may not run although their line does."""
FOLLOWED_METHODS = frozenset({"detach", "detach_", "numpy"})
"""Methods that only tensors have: where the ops are followed, each line that runs one is noted."""


class CuttingCode(NamedTuple):
    """A piece of code that can cut."""

    place: CodePlace
    text: str


class Lines(NamedTuple):
    """Some lines of a file, both included."""

    first: int
    last: int

    def contain(self, line: int) -> bool:
        """Return whether a line is one of them."""
        return self.first <= line <= self.last


def find_cutting_code(source: SourceRow, start: int, end: int | None) -> list[CuttingCode]:
    """Find the code between two lines that can cut, as far as the function around the first of them goes.

    Args:
        source: the text with both lines.
        start: the line after which, or in which, the graph is cut.
        end: the line before which, or in which, it is cut. If it does not come after ``start``, both are taken to lie
            in one loop, of which any line may run in between.

    >>> text = '''def forward(self, x):
    ...     h = self.a(x)
    ...     h = h.detach()
    ...     return self.b(h)
    ... '''
    >>> find_cutting_code(SourceRow("net.py", 1, text, True), 2, 4)
    [CuttingCode(place=CodePlace(file='net.py', line=3), text='h.detach()')]
    """
    return list_cutting_code(source, find_lines(parse_row(source), start, end))


def list_cutting_code(source: SourceRow, lines: Lines) -> list[CuttingCode]:
    """List the code in some lines that can cut, of nested pieces the outermost one."""
    nodes = [node for node in _cutting_nodes(parse_row(source)) if lines.contain(node.lineno)]
    inner = {id(part) for node in nodes for part in ast.walk(node) if part is not node}
    outer = [node for node in nodes if id(node) not in inner]
    return sorted({CuttingCode(CodePlace(source.file, node.lineno), ast.unparse(node)) for node in outer})


def find_lines(tree: ast.AST, start: int, end: int | None) -> Lines:
    """Return the lines that may run between two lines, as far as the function around the first of them goes."""
    function = find_function(tree, start)
    if end is None or function is not find_function(tree, end):
        ends = [getattr(node, "end_lineno", start) for node in ast.walk(function)]
        return Lines(start, max(ends))
    loop = find_innermost(tree, (ast.For, ast.AsyncFor, ast.While), end, start) if end <= start else None
    return Lines(start, end) if loop is None else Lines(loop.lineno, loop.end_lineno or start)


def list_other_calls(
    tree: ast.AST, lines: Lines, modules: Mapping[int, Collection[str]], defined: Container[str]
) -> list[str]:
    """List the functions that some lines call and that may cut where they are defined.

    Args:
        tree: the text.
        lines: the lines to look at.
        modules: line → the names of the modules that were called there: what these calls do was recorded.
        defined: the names of functions of the program, which are no library's even if they have such a name.

    >>> texts = ("y = pool.query(net(x))", "y = net(x).data.cpu()", "y = norm(net(x))", "y = pool.roll(net(x))")
    >>> trees = map(parse_source, texts)
    >>> [list_other_calls(tree, Lines(1, 1), {1: {"net"}}, {"norm", "self.roll"}) for tree in trees]
    [['pool.query'], [], ['norm'], ['pool.roll']]
    """
    names: dict[int, list[str]] = {}
    for node in iter_nodes(tree, lines):
        used = node.func if isinstance(node, ast.Call) else node
        is_property = isinstance(node, ast.Attribute) and ast.unparse(node) in defined
        if isinstance(node, ast.Call) or is_property:
            names.setdefault(node.lineno, []).append(ast.unparse(used))
    return [name for line, called in sorted(names.items()) for name in _list_unknown(called, modules, line, defined)]


def _list_unknown(
    called: list[str], modules: Mapping[int, Collection[str]], line: int, defined: Container[str]
) -> list[str]:
    """List the functions that a line calls beside modules; a loop may call these by another name."""
    known = {name for names in modules.values() for name in names}
    unknown = [name for name in called if not _is_known(name, known, defined)]
    last_names = {re.findall(r"\w+", name)[-1] for name in called if re.search(r"\w", name)}
    is_module = any(name not in last_names for name in modules.get(line, ()))
    first = next((name for name in unknown if name not in defined), None) if is_module else None
    return [name for name in unknown if name != first]


def _is_known(function: str, modules: Container[str], defined: Container[str]) -> bool:
    names = re.findall(r"\w+", function)
    last = names[-1] if names else ""
    if last[:1].isupper():  # to make an object cuts nothing
        return function not in defined
    if last in modules or function in defined:
        return last in modules
    is_known = last in KNOWN_CALLS or last in CUTTING_METHODS or last in CUTTING_FUNCTIONS
    if last in TENSOR_METHODS and len(names) > 1:
        is_known = last not in defined and f"self.{last}" not in defined
    return is_known or (bool(names) and names[0] in KNOWN_ROOTS)


def leaves_torch(text: str) -> bool:
    """Whether code that can cut goes through numbers of Python or numpy.

    >>> [leaves_torch(text) for text in ("loss.item()", "float(loss)", "x.detach().float()")]
    [True, True, False]
    """
    return _LEAVING.search(text) is not None


def find_conversion(tree: ast.Module, line: int, sentence: str) -> ast.Call | None:
    """Return the outermost call in a line that makes numbers of Python or numpy, or a tensor of these.

    It does so from the result of code that a sentence names; None if there is no such call.

    >>> texts = ("torch.tensor(x.detach().tolist())", "np.asarray(x.detach())", "f(x.detach().float(), y.item())")
    >>> found = (find_conversion(parse_source(text), 1, "x.detach() returns a tensor.") for text in texts)
    >>> [call and ast.unparse(call) for call in found]
    ['torch.tensor(x.detach().tolist())', 'np.asarray(x.detach())', None]
    """
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_conversion(node))
    around = (call for call in calls if covers(call, line))
    return next((call for call in around if any(ast.unparse(one) in sentence for one in _cutting_nodes(call))), None)


def find_converted(call: ast.Call) -> str:
    """Return the tensor of which a call makes an equal one by way of numbers; empty if it computes something else.

    >>> texts = ("torch.tensor(x.detach().tolist())", "torch.from_numpy(x.data.numpy() / 2)", "x.tolist()")
    >>> [find_converted(ast.parse(text).body[0].value) for text in texts]
    ['x', '', '']
    """
    part: ast.expr = call
    if get_last_name(call.func) not in _MAKING_TENSORS:
        return ""
    while isinstance(part, (ast.Call, ast.Attribute)):
        name = get_last_name(part.func if isinstance(part, ast.Call) else part)
        is_making = name in (*_MAKING_TENSORS, *_NUMPY_CONVERSIONS)
        if is_making and isinstance(part, ast.Call) and len(part.args) == 1 and not part.keywords:
            part = part.args[0]
        elif isinstance(part, ast.Attribute) and name == "data":
            part = part.value
        elif name in _KEEPING_NUMBERS and isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            part = part.func.value
        else:
            break
    is_tensor = isinstance(part, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return ast.unparse(part) if is_tensor else ""


def _is_conversion(call: ast.Call) -> bool:
    return get_last_name(call.func) in (*_CONVERSIONS, *_NUMPY_CONVERSIONS) or _makes_float(call)


def _makes_float(call: ast.Call) -> bool:
    """Return whether a call makes a number of Python: ``float(x)``, not ``x.float()``."""
    return isinstance(call.func, ast.Name) and call.func.id == "float"


def has_only_reparameterised(texts: Iterable[str]) -> bool:
    """Return whether all distributions that some code makes have an ``rsample()``, and it makes one.

    >>> [has_only_reparameterised([text]) for text in ("Normal(m, s)", "dist.Categorical(p)", "pool.sample()")]
    [True, False, False]
    """
    called = {name for text in texts for name in re.findall(r"(\w+)\(", text)}
    return not called.isdisjoint(_REPARAMETERISED) and called.isdisjoint(_NOT_REPARAMETERISED)


def get_last_name(function: ast.expr) -> str:
    """Return the name by which code reaches a function: ``f`` of ``f`` and of ``module.f``; empty for another one."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def list_arguments(call: ast.Call) -> list[ast.expr]:
    """List what a call is given, by position and by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def uses_attribute(tree: ast.Module, name: str) -> bool:
    """Return whether code uses an attribute of anything; true of what could not be parsed. To assign it is no use.

    >>> texts = ("self.scale = 1", "x * self.scale", "'x.scale'", "getattr(self, 'scale')")
    >>> [uses_attribute(parse_source(text), "scale") for text in texts]
    [False, True, False, True]
    """
    return not tree.body or any(_names(node, name) for node in ast.walk(tree))


def _names(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Call) and get_last_name(node.func) == "getattr":
        return any(isinstance(given, ast.Constant) and given.value == name for given in node.args[1:2])
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)


def reaches_unnamed(tree: ast.AST, lines: Lines) -> bool:
    """Return whether some lines may reach attributes without naming them: by a text, or all that a module has.

    >>> texts = ("getattr(self, f'scale{i}')", "getattr(self, 'scale')", "sum(p.sum() for p in self.parameters())")
    >>> [reaches_unnamed(parse_source(text), Lines(1, 1)) for text in texts]
    [True, False, True]
    """
    return any(isinstance(node, ast.expr) and _reaches_unnamed(node) for node in iter_nodes(tree, lines))


def _reaches_unnamed(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and get_last_name(node.func) == "getattr":
        return not any(isinstance(given, ast.Constant) for given in node.args[1:2])
    name = get_last_name(node)
    return not _REACHING.isdisjoint((name, name.removeprefix("_")))


@lru_cache(maxsize=128)
def parse_source(text: str, first_line: int = 1) -> ast.Module:
    """Parse the text of a function or of a file, whose first line has a number; an empty module if that fails."""
    try:
        return ast.increment_lineno(ast.parse(dedent(text)), first_line - 1)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def parse_row(source: SourceRow) -> ast.Module:
    """Parse a recorded text; the lines of the tree are those of its file."""
    return parse_source(source.text, source.line)


def iter_file_trees(trace: TraceData, *files: str | None) -> Iterator[tuple[SourceRow, ast.Module]]:
    """Yield the recorded texts of a file, or of all files, with their trees, whose lines are those of the file."""
    return ((source, parse_row(source)) for source in trace.sources if not files or source.file in files)


def iter_nodes(tree: ast.AST, lines: Lines) -> Iterator[ast.expr | ast.stmt]:
    """Yield the statements and expressions that begin in some lines."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.expr, ast.stmt)))
    return (node for node in nodes if lines.contain(node.lineno))


def _cutting_nodes(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = get_last_name(node.func)
            is_function = _makes_float(node) or name in CUTTING_FUNCTIONS
            if (is_function and not _has_only_constants(node)) or name in CUTTING_METHODS:
                yield node
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            yield node


def _has_only_constants(call: ast.Call) -> bool:
    """Whether a call makes something of constants alone, as ``torch.tensor([0.1, 1.0])`` does."""
    parts = [part for argument in call.args for part in ast.walk(argument)]
    return bool(parts) and not any(isinstance(part, (ast.Name, ast.Attribute, ast.Call)) for part in parts)


def covers(node: ast.expr | ast.stmt, line: int) -> bool:
    """Return whether a line is one of those of a statement or an expression."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def find_function(tree: ast.AST, line: int) -> ast.AST:
    """Return the innermost function around a line of a text; the whole text if there is none."""
    return find_innermost(tree, FUNCTIONS, line) or tree


def find_innermost(tree: ast.AST, kinds: tuple[type[Statement], ...], first: int, last: int = 0) -> Statement | None:
    """Return the innermost statement of some kinds around a line, or around the lines up to ``last``."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, kinds))
    around = (node for node in nodes if node.lineno <= first and max(first, last) <= (node.end_lineno or 0))
    return max(around, key=lambda node: node.lineno, default=None)
