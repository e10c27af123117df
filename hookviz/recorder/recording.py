"""One recording: its components, and the order in which they begin and end."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.autograd.variable_names import validate_names
from hookviz.recorder.exception_tracker import describe_exception, exception_text
from hookviz.recorder.follower import Followers
from hookviz.recorder.followers.cut_tracker import CutTracker
from hookviz.recorder.followers.distributed import RankTracker
from hookviz.recorder.followers.eager_regions import EagerRegions
from hookviz.recorder.followers.grad_scaler import ScaleTracker
from hookviz.recorder.followers.gradient_edits import GradientEdits
from hookviz.recorder.followers.histograms import Histograms
from hookviz.recorder.followers.hook_ledger import HookLedger
from hookviz.recorder.followers.moved_parameters import MovedParameters
from hookviz.recorder.followers.optimizer_steps import OptimizerTracker
from hookviz.recorder.followers.parameter_ledger import ParameterLedger
from hookviz.recorder.followers.retention import Retention
from hookviz.recorder.followers.stop_condition import StopCondition, TroubleFile
from hookviz.recorder.followers.training_tracker import OptimizerGroups, TrainingTracker
from hookviz.recorder.followers.unfired_hooks import UnfiredHooks
from hookviz.recorder.followers.user_code import UserCode
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.recorder.modules.module_call import ModuleCall
from hookviz.recorder.options import RecordOptions
from hookviz.recorder.passes.pass_tracker import PassTracker
from hookviz.recorder.session import Session, is_outermost
from hookviz.trace import StepRow, TraceData
from hookviz.trace.cells import Numbers


class Recording:
    """Records the module calls, backward passes and optimizer steps of one thread into one trace."""

    def __init__(self, options: RecordOptions) -> None:
        trace, names, models = TraceData(statistics=options.statistics), validate_names(options.names), options.models
        self.trace, self.session = trace, Session(trace, options.every)
        self._reads_norms = trace.statistics == "norm"
        """Whether the user chose so."""
        self.thread, self.sampler, self.guard = self.session.thread, self.session.sampler, self.session.guard
        self.missed_passes = False
        """Whether a pass ran in a thread that no recording follows."""
        self.missed_calls = False
        """Whether a module was called in such a thread, if the recording follows all modules."""
        self.gives_way = False
        """Whether it ends as soon as the program begins a recording of its own, as that of the command line does."""
        self.has_given_way = False
        self._is_closed = False
        # Each follower is made after those that it asks. No event depends on the order in which they are told of it.
        followers = self.followers = Followers(self.session)
        self.calls = CallTracker(self.session, models, followers)
        self.edits = followers.add(GradientEdits(trace))
        training = followers.add(TrainingTracker(trace, self.calls.modules, names, self.edits))
        moved = followers.add(MovedParameters(trace, training))
        self.groups = followers.add(OptimizerGroups(trace, training))
        self.optimizers = followers.add(OptimizerTracker(self.session, training, self.groups, moved, followers))
        followers.add(Retention(self.session, options.keep, self._is_idle, self._passes_dropped, self._renumber))
        path = options.find_trouble_file()
        self.trouble_file = None if path is None else TroubleFile(trace, self.session.notes, path)
        if options.histograms:
            followers.add(Histograms(trace))
        if options.compiled == "eager":
            followers.add(EagerRegions(self.session.notes))
        cuts = followers.add(CutTracker(self.session, self.calls.flow)) if options.cuts else None
        parameters = followers.add(ParameterLedger(trace, self.calls, cuts, names))
        self.hook_ledger = followers.add(HookLedger(self.session, self.calls, parameters))
        followers.add(self.hook_ledger.dates)
        followers.add(self.hook_ledger.handles)
        followers.add(UserCode(trace, names, () if cuts is None else cuts.lines))
        self.scales = followers.add(ScaleTracker(self.session, self.optimizers))
        ranks = followers.add(RankTracker(self.session, self.calls))
        self.condition = followers.add(StopCondition(self.session, options))
        self.passes = PassTracker(self.session, names, self.calls, ranks, followers)
        followers.add(UnfiredHooks(self.passes, self.hook_ledger, self.optimizers, names))

    # -- a module is called; none of this may raise

    def begin_call(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> ModuleCall | None:
        """Begin a call of ``module``; return None if the call cannot be observed."""
        session = self.session
        try:
            with session.lock, DisableTorchFunction(), hidden_from_tools():
                session.notes.add_saved_tensor_hooks()
                self.followers.tell("call_begins")
                return self.calls.begin(module, args, kwargs)
        except Exception as error:
            session.report_internal_error(error, self.calls.modules.label(module))
            return None

    def end_call(self, call: ModuleCall | None, depth: int) -> None:
        """End a call with ``depth`` calls around it. A call that cannot be observed leaves no step."""
        self.session.guard(self._end_call, call, depth)

    def _end_call(self, call: ModuleCall | None, depth: int) -> None:
        self.session.attempt(self.calls.end, call, depth)
        self.followers.tell("call_ended", depth)
        if call is not None:
            self.followers.tell("rows_may_move", False)

    # -- a pass has ended, and with it perhaps the recording

    def stop_if_needed(self) -> None:
        """Stop recording if the condition of ``until`` is met after a pass; then write the file of ``on_trouble``."""
        reason = self.condition.find_reason() if is_outermost() else None
        if reason is None:
            return
        self.sampler.is_stopped = True
        self.followers.tell("stop")
        with self.session.lock:
            self.session.notes.add(reason)
            self.followers.tell("rows_may_move", True)
        if self.trouble_file is not None:
            self.trouble_file.write(reason.text)

    def note_exception(self, error: BaseException) -> None:
        """Note ``error``, which is about to end the recording; it is a step of its own unless one names it already."""
        if isinstance(error, Exception) and not self.sampler.is_stopped:
            self.session.guard(self._note_exception, error)

    def _note_exception(self, error: Exception) -> None:
        self.session.notes.say("raised", error=exception_text(error).partition("\n")[0])
        if self.session.exceptions.is_new(error):
            row = StepRow(self.session.last_pass, "exception", **describe_exception(error))
            self.trace.rows.append(row)

    def write_exception(self, error: BaseException) -> None:
        """Write the file of ``on_trouble`` because ``error`` left the block."""
        if self.trouble_file is not None and isinstance(error, Exception):
            self.trouble_file.write_exception(error)

    # -- fingerprints and numbers that are outdated

    def forget(self, tensors: Iterable[torch.Tensor]) -> None:
        """Forget the fingerprints of ``tensors``, which are about to get other contents, and all references to them."""
        for tensor in tensors:
            self.passes.numbering.forget(tensor)
            self.calls.probe.forget(tensor)
            self.calls.flow.forget(tensor)
            self.followers.tell("forget", tensor)

    def _passes_dropped(self, count: int) -> None:
        """Note what is known from the first ``count`` passes, which are about to be dropped."""
        self.session.last_pass = max(self.session.last_pass - count, 0)
        self.followers.tell("dropped", count)

    def _is_idle(self) -> bool:
        """Return whether neither a pass nor a module call is running in any thread."""
        return not self.session.passes and not self.calls.is_busy()

    def _renumber(self, numbers: Numbers) -> None:
        """Renumber everything that is left after passes were dropped."""
        self.passes.renumber(numbers["ops"])
        self.calls.renumber(numbers["calls"], numbers["hook_rows"])

    # -- the recording ends

    def close(self) -> None:
        """End what is still open, remove all marks from nodes, and note what was not recorded; once."""
        if self._is_closed:
            return
        notes = self.session.notes
        self.passes.close()
        self.sampler.add_notes(notes)
        if self.missed_passes:
            notes.say("elsewhere")
        if self.missed_calls:
            notes.say("elsewhere.calls")
        if not self.trace.rows and not self.trace.remarks:
            notes.say("trace.empty")
        if self._reads_norms:
            notes.say("statistics")
        self.session.guard(self._close_components)
        self.trace.close()
        self._is_closed = True

    def _close_components(self) -> None:
        self.session.attempt(self.calls.close)
        self.session.attempt(self.passes.fetch_values)
        self.followers.tell("rows_may_move", True)
        self.followers.tell("close")
