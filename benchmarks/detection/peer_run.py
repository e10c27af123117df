"""Runs programs with one tool, and prints what it says: ``-m benchmarks.detection.peer_run TOOL PROGRAM ...``."""

import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch

TURNS = 20
"""How often the loop of a program turns: enough for checks that wait for several steps with the same trouble."""

HARDWARE_RULES = {"TA200", "TA201", "TA202", "TA203"}
"""Rules of torch-audit about speed and memory, which these tiny nets break without any fault."""


class Said(NamedTuple):
    """Something that a tool says; an alarm is a warning or an error, by the tool's own words."""

    is_alarm: bool
    text: str


class Plain:
    """PyTorch alone: what it raises and what it warns of."""

    package = "torch"
    """Its name in the package index."""
    module = "torch"
    """What is imported before the first program."""
    edits: ClassVar[dict[str, str]] = {"for _ in range(3):": "for _ in turns(net, opt):"}
    """What is changed in a program, within its lines, so that their numbers stay."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__", "turns": self.turns}
        """The global names of the program."""
        self.watched: Any = None
        """What ``watching`` gives to its block."""

    def turns(self, net: torch.nn.Module, opt: torch.optim.Optimizer) -> Iterator[int]:
        """Yield the turns of the loop, watched by the tool."""
        yield from range(TURNS)

    def watching(self) -> contextlib.AbstractContextManager[Any]:
        """Watch the whole program."""
        return contextlib.nullcontext()

    def report(self) -> Iterator[Said]:
        """Yield what the tool found, after the program."""
        yield from ()


class Anomaly(Plain):
    """PyTorch's anomaly mode."""

    def watching(self) -> contextlib.AbstractContextManager[Any]:
        """Switch the mode on, once for the whole program."""
        torch.autograd.set_detect_anomaly(True)
        return contextlib.nullcontext()


class TorchLens(Plain):
    """TorchLens: the checks of its quick start while the loop runs, then each audit of a traced training step."""

    package = "torchlens"
    module = "torchlens.checks"

    def turns(self, net: torch.nn.Module, opt: torch.optim.Optimizer) -> Iterator[int]:
        """Watch with a session of checks, as "The checks kit" in its documentation does."""
        self.session = import_module("torchlens.checks").ChecksSession(net, opt, scaler=None)
        self.session.register_change_check()
        self.session.register_nonfinite_gradient_check()
        self.session.register_update_ratio_check()
        with self.session:
            yield from range(TURNS)

    def report(self) -> Iterator[Said]:
        """Yield the findings of the session and of the audits."""
        if hasattr(self, "session"):
            found = self.session.report()
            yield from (self._say(finding, finding.names) for finding in found.findings)
            yield Said(False, f"disclosures: {found.disclosures}")
        net, batch = self.names["net"], self.names["x"]
        debug, lens = import_module("torchlens.debug"), import_module("torchlens")
        trace = lens.trace(net, batch, capture=lens.options.CaptureOptions(save_grads=True))
        output = trace[trace.output_layers[0]].out
        if output.requires_grad:
            trace.log_backward(output.square().mean())
        for finding in debug.audit_trace(trace).findings:
            yield self._say(finding, (*finding.ops, *finding.modules))
        yield from (self._say(finding, ()) for finding in debug.audit_params(net).findings)
        begin = debug.bisect_nan(trace)
        if begin.found:
            yield Said(True, f"{begin.message} {begin.label} {begin.source_line}")

    @staticmethod
    def _say(finding: Any, names: tuple[str, ...]) -> Said:
        return Said(finding.severity != "info", f"{finding.check}: {finding.message} ({', '.join(names)})")


class TorchAudit(Plain):
    """torch-audit: ``audit_dynamic`` with its wrappers, which its README calls the most accurate way, at each step."""

    package = "torch-audit"
    module = "torch_audit"
    edits: ClassVar[dict[str, str]] = {
        **Plain.edits,
        "loss = net(x)": "loss = auditor.forward(x)",
        "loss.backward()": "auditor.backward(loss)",
        "opt.step()": "auditor.optimizer_step()",
    }

    def turns(self, net: torch.nn.Module, opt: torch.optim.Optimizer) -> Iterator[int]:
        """Watch with an auditor, whose wrappers the program calls."""
        audit = import_module("torch_audit")
        with audit.audit_dynamic(net, optimizer=opt, every_n_steps=1, ignore_rules=HARDWARE_RULES) as self.auditor:
            self.names["auditor"] = self.auditor
            yield from range(TURNS)

    def report(self) -> Iterator[Said]:
        """Yield its findings."""
        result = self.auditor.finish(report=False)
        for finding in result.findings:
            place = f"{finding.module_path or ''} {finding.entity or ''}"
            title = result.rules[finding.rule_id].title
            yield Said(finding.severity.value != "INFO", f"{finding.rule_id} {title}: {place}: {finding.message}")


class Hookviz(Plain):
    """hookviz, for comparison: a recording of the whole program."""

    package = "hookviz"
    module = "hookviz"

    def watching(self) -> contextlib.AbstractContextManager[Any]:
        """Record."""
        recording: contextlib.AbstractContextManager[Any] = import_module("hookviz").record()
        return recording

    def report(self) -> Iterator[Said]:
        """Yield its findings."""
        for finding in self.watched.findings:
            text = f"{finding.sentence} {finding.cause} program.py:{finding.line}"
            yield Said(finding.severity != "remark", text)


TOOLS: dict[str, type[Plain]] = {
    "PyTorch": Plain,
    "anomaly mode": Anomaly,
    "TorchLens": TorchLens,
    "torch-audit": TorchAudit,
    "hookviz": Hookviz,
}


def find_version(tool: str) -> str | None:
    """Return the installed version of a tool; None if it is not installed."""
    try:
        return version(TOOLS[tool].package)
    except PackageNotFoundError:
        return None


def run_program(name: str, path: str) -> list[Said]:
    """Run a program with a tool, and return what the tool says; what anybody writes to stderr is an alarm."""
    torch.set_num_threads(1)
    tool, found = TOOLS[name](), list[Said]()
    with contextlib.redirect_stderr(io.StringIO()) as written:
        with tool.watching() as tool.watched:
            try:
                exec(compile(Path(path).read_text(), path, "exec"), tool.names)
            except Exception:
                traceback.print_exc()
        try:
            found += tool.report()
        except Exception:
            traceback.print_exc()
    if written.getvalue().strip():
        found.append(Said(True, written.getvalue()))
    return list(dict.fromkeys(found))


def main(name: str, paths: list[str]) -> None:
    """Run each program in its own copy of a process that has imported the tool."""
    import_module(TOOLS[name].module)
    torch.optim.SGD(torch.nn.Linear(1, 1).parameters()).step()  # the first optimizer imports for seconds
    for path in paths:
        child = os.fork()  # and not multiprocessing, in whose processes TorchLens refuses to work
        if child == 0:
            Path(path).with_suffix(".json").write_text(json.dumps(run_program(name, path)))
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
