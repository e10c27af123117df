"""The faults of the generated programs, each with what a right finding names: written without looking at the rules."""

from typing import NamedTuple


class Fault(NamedTuple):
    """One fault, as pieces of a program: ``{net}`` is the net, ``{i}`` a layer's number, ``{made}`` what makes it."""

    name: str
    kinds: tuple[str, ...]
    """The kinds of findings that say it."""
    on: str
    """The attribute that a right finding names, as a module or a parameter, or what it holds; empty if none has to."""
    words: tuple[str, ...]
    """Words that say what was done, one of which is enough from a tool that names neither object nor line."""
    before: str = ""
    """Lines before the training loop, after the net and its optimizer were made."""
    late: str = ""
    """Lines after the optimizer was made."""
    first: str = ""
    """Lines at the begin of each turn of the loop."""
    between: str = ""
    """Lines between the backward pass and the step."""
    after: str = ""
    """Lines after the loop."""
    call: str = ""
    """What takes the place of the call of the layer, ``self.l{i}(h)``."""
    line: str = ""
    """What takes the place of the whole line of the forward that calls the layer."""
    made: str = ""
    """Lines at the end of ``__init__``."""
    helper: str = ""
    """A function of the program."""
    clear: str = "opt.zero_grad()"
    """Lines before the backward pass."""
    turns: int = 3
    """How often the training loop turns."""
    hides: bool = False
    """Whether no gradient, or no finite one, comes to the layers before it: what is wrong there has no effect."""
    is_alone: bool = False
    """Whether it ends the program, or is none beside a fault that hides what comes before it."""
    follows: tuple[str, ...] = ()
    """The kinds of findings that are true beside it, because they follow from it in some nets."""
    layers: tuple[int, ...] = (1, 2)
    """The layers that it may be put into."""
    healthy: dict[str, str] = {}  # noqa: RUF012 - the default of a named tuple, which nobody changes
    """The pieces that a healthy twin has instead."""


MARK = "  # fault"
WATCH = """
def watch(*given):
    SEEN.append(len(given))
"""
FAULTS = (
    Fault(
        "hook after the last call",
        ("late",),
        "l{i}",
        ("did not fire", "never fired", "last call"),
        after=f"{{net}}.l{{i}}.register_forward_hook(watch){MARK}",
        helper=WATCH,
        healthy={"before": "{net}.l{i}.register_forward_hook(watch)", "after": ""},
    ),
    Fault(
        "hook removed too early",
        ("removed",),
        "l{i}",
        ("removed",),
        before=f"handle = {{net}}.l{{i}}.register_forward_hook(watch){MARK}\nhandle.remove(){MARK}",
        helper=WATCH,
        healthy={"before": "handle = {net}.l{i}.register_forward_hook(watch)", "after": "handle.remove()"},
    ),
    Fault(
        "forward is called",
        ("bypassed",),
        "l{i}",
        ("forward directly", "forward is called", ".forward("),
        before="{net}.l{i}.register_forward_hook(watch)",
        call=f"self.l{{i}}.forward(h){MARK}",
        helper=WATCH,
        healthy={"call": ""},
    ),
    Fault(
        "detach",
        ("cut",),
        "l{i}",
        ("detach",),
        line=f"h = torch.tanh(self.l{{i}}(h))\nh = h.detach(){MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))\nh = h.clone()"},
    ),
    Fault(
        "detach in a helper",
        ("cut",),
        "l{i}",
        (".data", "detach"),
        line="h = smooth(torch.tanh(self.l{i}(h)))",
        helper=f"\ndef smooth(h):\n    values = h.data{MARK}\n    return values * 1.0\n",
        hides=True,
        healthy={"helper": "\ndef smooth(h):\n    return h * 1.0\n"},
    ),
    Fault(
        "no_grad",
        ("cut",),
        "l{i}",
        ("no_grad",),
        line=f"with torch.no_grad():{MARK}\n    h = torch.tanh(self.l{{i}}(h))",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))"},
    ),
    Fault(
        "parameter used as a number",
        ("cut",),
        "scale{i}",
        (".item()",),
        made="self.scale{i} = nn.Parameter(torch.ones(1))",
        line=f"h = torch.tanh(self.l{{i}}(h)) * self.scale{{i}}.item(){MARK}",
        healthy={"line": "h = torch.tanh(self.l{i}(h)) * self.scale{i}"},
    ),
    Fault(
        "parameter that nothing uses",
        ("cut",),
        "gate{i}",
        ("unused", "nothing uses"),
        made="self.gate{i} = nn.Parameter(torch.ones(1))",
        healthy={"line": "h = torch.tanh(self.l{i}(h)) * self.gate{i}"},
    ),
    Fault(
        "hooks pile up",
        ("repeated",),
        "l{i}",
        ("pile up", "registered again"),
        first=f"{{net}}.l{{i}}.register_forward_hook(watch){MARK}",
        helper=WATCH,
        healthy={"first": "", "before": "{net}.l{i}.register_forward_hook(watch)"},
    ),
    Fault(
        "edit in place of a shared gradient",
        ("edited_in_place",),
        "",
        ("in place", "in-place", "inplace"),
        line="branch = self.l{i}(h)\nif branch.requires_grad:\n    branch.register_hook(damp)\nh = h + branch",
        helper=f"\ndef damp(grad):\n    grad.mul_(0.1){MARK}\n",
        is_alone=True,
        healthy={"helper": "\ndef damp(grad):\n    return grad * 0.1\n"},
    ),
    Fault(
        "hook raises",
        ("exception",),
        "l{i}",
        ("IndexError",),
        before="{net}.l{i}.register_full_backward_hook(norm_of_input)",
        helper=f"\ndef norm_of_input(module, grad_input, grad_output):\n    SEEN.append(grad_input[9].norm()){MARK}\n",
        is_alone=True,
        healthy={
            "helper": "\ndef norm_of_input(module, grad_input, grad_output):\n    SEEN.append(grad_output[0].norm())\n"
        },
    ),
    Fault(
        "layer replaced after its hook",
        ("substituted",),
        "l{i}",
        ("replaced",),
        before=f"{{net}}.l{{i}}.register_forward_hook(watch){MARK}\n{{net}}.l{{i}} = {{made}}",
        helper=WATCH,
        healthy={"before": "{net}.l{i} = {made}\n{net}.l{i}.register_forward_hook(watch)"},
    ),
    Fault(
        "hook on a view",
        ("substituted", "not_in_graph"),
        "l{i}",
        ("a view", "not a leaf", "non-leaf"),
        before=f"next({{net}}.l{{i}}.parameters())[0].register_hook(watch){MARK}",
        helper=WATCH,
        healthy={"before": "next({net}.l{i}.parameters()).register_hook(watch)"},
    ),
    Fault(
        "gradients cleared before the step",
        ("cleared",),
        "",
        ("zero_grad", "cleared"),
        between=f"opt.zero_grad(){MARK}",
        layers=(0,),
        healthy={"between": ""},
    ),
    Fault(
        "zero_grad forgotten",
        ("not_zeroed",),
        "",
        ("zero_grad", "accumulat"),
        clear="",
        layers=(0,),
        healthy={"clear": "opt.zero_grad()"},
    ),
    Fault(
        "accumulation thrown away",
        ("discarded",),
        "",
        ("zero_grad", "discard", "thrown away"),
        clear=f"opt.zero_grad(){MARK}",
        between="if _ % 2 == 0:\n    continue",
        turns=6,
        layers=(0,),
        healthy={"first": "if _ % 2 == 0:\n    opt.zero_grad()", "clear": ""},
    ),
    Fault(
        "frozen after its hook",
        ("frozen",),
        "l{i}",
        ("frozen", "requires_grad"),
        before=f"weight = next({{net}}.l{{i}}.parameters())\nweight.register_hook(watch){MARK}\n"
        "for p in {net}.l{i}.parameters():\n    p.requires_grad_(False)",
        helper=WATCH,
        healthy={"before": "next({net}.l{i}.parameters()).register_hook(watch)"},
    ),
    Fault(
        "log of a negative number",
        ("nan",),
        "",
        ("LogBackward", "log_1", "log of"),
        line=f"h = torch.tanh(self.l{{i}}(h))\nh = (h - 2).log(){MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))\nh = (h + 2).log()"},
    ),
    Fault(
        "input lost by a pre-hook",
        ("lost_inputs",),
        "l{i}",
        ("lost", "dropped"),
        before="{net}.l{i}.register_forward_pre_hook(double)",
        made="self.l{i} = Gated(self.l{i})",
        call="self.l{i}(h, 0.5)",
        helper=f"""
class Gated(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, h, gate=1.0):
        return self.inner(h) * gate


def double(module, given):
    return given[0] * 2{MARK}
""",
        healthy={
            "helper": """
class Gated(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, h, gate=1.0):
        return self.inner(h) * gate


def double(module, given):
    return (given[0] * 2, *given[1:])
"""
        },
    ),
    Fault(
        "sample of a distribution",
        ("cut",),
        "l{i}",
        ("sample",),
        line=f"h = torch.distributions.Normal(self.l{{i}}(h), 1.0).sample(){MARK}",
        hides=True,
        healthy={"line": "h = torch.distributions.Normal(self.l{i}(h), 1.0).rsample()"},
    ),
    Fault(
        "numpy on the way",
        ("cut",),
        "l{i}",
        ("numpy",),
        line=f"h = torch.from_numpy(self.l{{i}}(h).detach().numpy()){MARK}",
        hides=True,
        healthy={"line": "h = self.l{i}(h).contiguous()"},
    ),
    Fault(
        "choice by argmax",
        ("cut",),
        "l{i}",
        ("argmax",),
        line=f"chosen = self.l{{i}}(h).argmax(-1){MARK}\nh = F.one_hot(chosen, 8).float()",
        hides=True,
        follows=("zero",),  # where all choices are the same, no gradient comes to the weights of the next attention
        healthy={"line": "h = self.l{i}(h).softmax(-1)"},
    ),
    Fault(
        "reentrant checkpoint without an input that requires grad",
        ("cut",),
        "l{i}",
        ("None of the inputs have requires_grad", "reentrant"),
        line=f"h = torch.tanh(checkpoint(self.l{{i}}, h, use_reentrant=True)){MARK}",
        layers=(0,),
        healthy={"line": "h = torch.tanh(checkpoint(self.l{i}, h, use_reentrant=False))"},
    ),
    Fault(
        "hook removed before the recomputation",
        ("recomputed",),
        "l{i}",
        ("recomput",),
        first="handle = {net}.l{i}.register_forward_hook(double)",
        line="h = checkpoint(lambda z: torch.tanh(self.l{i}(z)), h, use_reentrant=False)",
        clear=f"handle.remove(){MARK}\nopt.zero_grad()",
        helper="\ndef double(module, given, output):\n    return output * 2\n",
        is_alone=True,
        healthy={"clear": "opt.zero_grad()", "between": "handle.remove()"},
    ),
    Fault(
        "frozen when it was called",
        ("cut", "frozen"),
        "l{i}",
        ("frozen", "requires_grad"),
        first="for p in {net}.l{i}.parameters():\n    p.requires_grad_(False)",
        clear="for p in {net}.l{i}.parameters():\n    p.requires_grad_(True)\nopt.zero_grad()",
        is_alone=True,
        healthy={"first": "", "clear": "opt.zero_grad()"},
    ),
    Fault(
        "output in a dict",
        ("returned",),
        "l{i}",
        ("dict",),
        made="self.l{i} = Named(self.l{i})",
        before=f"{{net}}.l{{i}}.register_full_backward_hook(watch){MARK}",
        line="h = torch.tanh(self.l{i}(h)['h'])",
        helper=f"""{WATCH}

class Named(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, h):
        return {{'h': self.inner(h)}}
""",
        healthy={"before": "{net}.l{i}.inner.register_full_backward_hook(watch)"},
    ),
    Fault(
        "layer replaced after the optimizer was made",
        ("replaced", "missing"),
        "l{i}",
        ("replaced", "not in the optimizer", "not hold"),
        late="{net}.l{i} = {made}",
        is_alone=True,
        healthy={"late": "", "before": "{net}.l{i} = {made}"},
    ),
    Fault(
        "tensor in place of a parameter",
        ("missing",),
        "",
        ("Parameter", "not in the optimizer", "no optimizer"),
        made=f"self.scale{{i}} = torch.ones(1, requires_grad=True){MARK}",
        line="h = torch.tanh(self.l{i}(h)) * self.scale{i}",
        healthy={"made": "self.scale{i} = nn.Parameter(torch.ones(1))"},
    ),
    Fault(
        "update of a variable by hand",
        ("rebound",),
        "",
        ("rebind", "new tensor", "not change"),
        late="opt = None",
        clear="{net}.zero_grad()",
        between=f"""with torch.no_grad():
    for p in {{net}}.parameters():
        p = p - 0.01 * p.grad{MARK}
continue""",
        is_alone=True,
        layers=(0,),
        healthy={
            "between": """with torch.no_grad():
    for p in {net}.parameters():
        p -= 0.01 * p.grad
continue"""
        },
    ),
    Fault(
        "loss of all pairs",
        ("broadcast",),
        "",
        ("broadcast", "shape"),
        clear=f"""scores = {{net}}(x).flatten(1).mean(1, keepdim=True)
target = torch.ones(len(scores))
loss = (scores - target).square().mean(){MARK}
opt.zero_grad()""",
        layers=(0,),
        healthy={
            "clear": """scores = {net}(x).flatten(1).mean(1, keepdim=True)
target = torch.ones(len(scores), 1)
loss = (scores - target).square().mean()
opt.zero_grad()"""
        },
    ),
    Fault(
        "two passes from one loss",
        ("repeated_loss",),
        "",
        ("twice", "doubled", "again"),
        clear=f"opt.zero_grad()\nloss.backward(retain_graph=True){MARK}",
        layers=(0,),
        healthy={"clear": "opt.zero_grad()\nloss.backward(retain_graph=True)\nopt.zero_grad()"},
    ),
    Fault(
        "gradients of another optimizer's pass",
        ("not_zeroed",),
        "l0",
        ("zero_grad", "two passes"),
        late="""head = torch.optim.SGD({net}.l3.parameters(), lr=0.01)
opt = torch.optim.SGD([*{net}.l0.parameters(), *{net}.l1.parameters(), *{net}.l2.parameters()], lr=0.01)""",
        clear=f"""opt.zero_grad()
head.zero_grad()
{{net}}(x).abs().mean().backward(){MARK}
head.step()
loss = {{net}}(x).square().mean()""",
        is_alone=True,
        layers=(0,),
        healthy={
            "clear": """head.zero_grad()
{net}(x).abs().mean().backward()
head.step()
opt.zero_grad()
loss = {net}(x).square().mean()"""
        },
    ),
    Fault(
        "hook without return",
        ("unreturned",),
        "l{i}",
        ("return",),
        before="{net}.l{i}.register_forward_hook(clip)",
        helper=f"\ndef clip(module, given, output):\n    output = output.clamp(-0.1, 0.1){MARK}\n",
        healthy={"helper": "\ndef clip(module, given, output):\n    return output.clamp(-0.1, 0.1)\n"},
    ),
    Fault(
        "parameter replaced after its hook",
        ("substituted",),
        "scale{i}",
        ("replaced",),
        made="self.scale{i} = nn.Parameter(torch.ones(1))\nself.scale{i}.register_hook(halve)",
        before=f"{{net}}.scale{{i}} = nn.Parameter(torch.full((1,), 0.5)){MARK}",
        line="h = torch.tanh(self.l{i}(h)) * self.scale{i}",
        helper="\ndef halve(grad):\n    return grad * 0.5\n",
        healthy={"before": "nn.init.constant_({net}.scale{i}, 0.5)"},
    ),
    Fault(
        "sigmoid before a loss of logits",
        ("sigmoid_twice",),
        "",
        ("sigmoid",),
        clear=f"""chances = torch.sigmoid({{net}}(x)){MARK}
loss = F.binary_cross_entropy_with_logits(chances, torch.ones_like(chances))
opt.zero_grad()""",
        layers=(0,),
        healthy={
            "clear": """chances = torch.sigmoid({net}(x))
loss = F.binary_cross_entropy(chances, torch.ones_like(chances))
opt.zero_grad()"""
        },
    ),
    Fault(
        "nll_loss of raw scores",
        ("raw_scores",),
        "",
        ("log_softmax", "log-prob"),
        clear=f"""out = {{net}}(x).flatten(1)
scores = out @ torch.eye(out.shape[1])
loss = F.nll_loss(scores, torch.zeros(len(out), dtype=torch.long)){MARK}
opt.zero_grad()""",
        follows=("zero",),  # the loss takes a number of the first step of a sequence: nothing comes to weight_hh
        layers=(0,),
        healthy={
            "clear": """out = {net}(x).flatten(1)
scores = out @ torch.eye(out.shape[1])
loss = F.nll_loss(scores.log_softmax(1), torch.zeros(len(out), dtype=torch.long))
opt.zero_grad()"""
        },
    ),
    Fault(
        "learning rate of 0",
        ("lr_zero",),
        "",
        ("learning rate", "lr=0", "lr is 0"),
        late="opt.param_groups[0]['lr'] = 0.0",
        layers=(0,),
        healthy={"late": ""},
    ),
    Fault(
        "object registered twice",
        ("repeated",),
        "l{i}",
        ("twice", "2 times"),
        before=f"halve = Halve()\nfor _ in range(2):\n    next({{net}}.l{{i}}.parameters()).register_hook(halve){MARK}",
        helper="\nclass Halve:\n    def __call__(self, grad):\n        return grad * 0.5\n",
        healthy={"before": "next({net}.l{i}.parameters()).register_hook(Halve())"},
    ),
    Fault(
        "row in place of the output",
        ("lost_rows",),
        "l{i}",
        ("first row", "first dimension", "shape"),
        before="{net}.l{i}.register_forward_hook(first)",
        helper=f"""
def first(module, given, output):
    return output[0] * 2{MARK}
""",
        is_alone=True,
        healthy={"helper": "\ndef first(module, given, output):\n    return output * 2\n"},
    ),
    Fault(
        "tensor in place of a tuple",
        ("exception",),
        "l{i}",
        ("tuple", "grad_input"),
        before="{net}.l{i}.register_full_backward_hook(scale)",
        helper=f"""
def scale(module, grad_input, grad_output):
    return grad_input[0] * 2{MARK}
""",
        is_alone=True,
        healthy={"helper": "\ndef scale(module, grad_input, grad_output):\n    return (grad_input[0] * 2,)\n"},
    ),
    Fault(
        "late binding in a loop",
        ("late_binding",),
        "",
        ("loop", "late binding", "name=name"),
        before=f"""for name, part in {{net}}.named_children():
    part.register_forward_hook(lambda module, given, output: SEEN.append(name)){MARK}""",
        is_alone=True,
        layers=(0,),
        healthy={
            "before": """for name, part in {net}.named_children():
    part.register_forward_hook(lambda module, given, output, name=name: SEEN.append(name))"""
        },
    ),
    Fault(
        "clipping before the pass",
        ("clips_nothing",),
        "",
        ("clip",),
        clear=f"opt.zero_grad()\ntorch.nn.utils.clip_grad_norm_({{net}}.parameters(), 1.0){MARK}",
        layers=(0,),
        healthy={"clear": "opt.zero_grad()", "between": "torch.nn.utils.clip_grad_norm_({net}.parameters(), 1.0)"},
    ),
    Fault(
        "layer in two optimizers",
        ("updated_twice",),
        "l{i}",
        ("both", "twice", "two optimizers"),
        late=f"extra = torch.optim.SGD({{net}}.l{{i}}.parameters(), lr=0.01){MARK}",
        between="extra.step()",
        is_alone=True,
        healthy={"late": "", "between": ""},
    ),
    Fault(
        "mean of nothing",
        ("nan",),
        "",
        ("nan",),
        line=f"h = torch.tanh(self.l{{i}}(h))\nh = h + h[:0].mean(){MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))\nh = h + h[:1].mean()"},
    ),
    Fault(
        "rounding without a gradient",
        ("zero",),
        "",
        ("round",),
        line=f"h = torch.tanh(self.l{{i}}(h))\nh = torch.round(h * 4) / 4{MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))\nh = h + (torch.round(h * 4) / 4 - h).detach()"},
    ),
    Fault(
        "dead ReLU",
        ("zero",),
        "",
        ("relu", "dead"),
        line=f"h = self.l{{i}}(h) - 50\nh = torch.relu(h){MARK}",
        hides=True,
        healthy={"line": "h = self.l{i}(h) + 0.5\nh = torch.relu(h)"},
    ),
    Fault(
        "saturated tanh",
        ("zero",),
        "",
        ("saturated", "tanh"),
        line=f"h = torch.tanh(self.l{{i}}(h) * 1e9){MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h) * 0.9)"},
    ),
    Fault(
        "all numbers beyond a clamp",
        ("zero",),
        "",
        ("clamp",),
        line=f"h = self.l{{i}}(h) + 50\nh = h.clamp(-1, 1){MARK}",
        hides=True,
        healthy={"line": "h = self.l{i}(h)\nh = h.clamp(-1, 1)"},
    ),
    Fault(
        "two factors of zeros",
        ("zero",),
        "down{i}",
        ("all 0", "zeros"),
        made=f"self.down{{i}} = nn.Parameter(torch.zeros(1)){MARK}\nself.up{{i}} = nn.Parameter(torch.zeros(1)){MARK}",
        line="h = torch.tanh(self.l{i}(h) * self.down{i} * self.up{i})",
        hides=True,
        healthy={
            "made": "self.down{i} = nn.Parameter(torch.zeros(1))\nself.up{i} = nn.Parameter(torch.ones(1))",
            "line": "h = torch.tanh(self.l{i}(h) * (self.up{i} + self.down{i}))",
        },
    ),
    Fault(
        "square root at 0",
        ("nan", "inf"),
        "",
        ("sqrt", "SqrtBackward"),
        line=f"h = torch.tanh(self.l{{i}}(h))\nh = (h - h.detach()).square().sqrt() + h{MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))\nh = ((h - h.detach()).square() + 1e-3).sqrt() + h"},
    ),
    Fault(
        "where does not protect a logarithm",
        ("nan", "inf"),
        "",
        ("LogBackward", "log"),
        line=f"h = torch.tanh(self.l{{i}}(h))\nh = torch.where(h > 0, h.clamp(min=0).log(), h){MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))\nh = torch.where(h > 0.1, h.clamp(min=0.1).log(), h)"},
    ),
    Fault(
        "exponential too large",
        ("nan", "inf"),
        "",
        ("ExpBackward", "exponential"),
        line=f"h = self.l{{i}}(h) * 1e5\nh = torch.exp(h) - torch.exp(h + 1){MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))\nh = torch.exp(h) - torch.exp(h + 1)"},
    ),
    Fault(
        "power of a negative number",
        ("nan",),
        "",
        ("PowBackward", "negative"),
        line=f"h = torch.tanh(self.l{{i}}(h))\nh = (h - 2) ** 0.45{MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h))\nh = (h + 2) ** 0.45"},
    ),
    Fault(
        "arc cosine beyond 1",
        ("nan",),
        "",
        ("AcosBackward", "acos"),
        line=f"h = torch.tanh(self.l{{i}}(h)) + 3\nh = torch.acos(h){MARK}",
        hides=True,
        healthy={"line": "h = torch.tanh(self.l{i}(h)) * 0.9\nh = torch.acos(h)"},
    ),
    Fault(
        "mask that hides whole rows",
        ("nan",),
        "",
        ("softmax", "mask"),
        line="h = torch.tanh(self.l{i}(h))\n"
        "h = h.masked_fill(torch.arange(h.shape[0]).view(-1, *[1] * (h.dim() - 1)) < 1, -torch.inf)\n"
        f"h = h.softmax(-1){MARK}",
        hides=True,
        healthy={
            "line": "h = torch.tanh(self.l{i}(h))\n"
            "h = h.masked_fill(torch.arange(h.shape[-1]) < 1, -torch.inf)\nh = h.softmax(-1)"
        },
    ),
    Fault(
        "backward that divides by 0",
        ("nan",),
        "",
        ("Length",),
        line="h = h + Length.apply(torch.tanh(self.l{i}(h)) * 0)",
        helper=f"""
class Length(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        length = h.square().sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(h, length)
        return length

    @staticmethod
    def backward(ctx, grad):
        h, length = ctx.saved_tensors
        return grad * h / length{MARK}
""",
        hides=True,
        healthy={"line": "h = h + Length.apply(torch.tanh(self.l{i}(h)) + 2)"},
    ),
)
