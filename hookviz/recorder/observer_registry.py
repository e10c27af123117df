"""The hook dicts in which the observers of a recording stand, and hooks that are put there while a pass runs."""

from typing import Any

import torch

from hookviz.recorder.call_tracker import CallTracker
from hookviz.recorder.hook_observer import HookDictObserver, HookListObserver, Observer, release
from hookviz.recorder.running_pass import RunningPass
from hookviz.recorder.session import Session
from hookviz.recorder.unwrapped_hooks import unwrap_hook
from hookviz.support.interrupts import Uninterrupted


class ObserverRegistry:
    """Lays observers around the hooks of the passes that run; passes through the same graph share them."""

    def __init__(self, session: Session, calls: CallTracker, running: list[RunningPass]) -> None:
        self.session, self.calls, self.running = session, calls, running
        self._known: dict[Any, HookDictObserver] = {}
        """``id`` of a dict or list of hooks → its stage."""

    def observe(self, watched: RunningPass, kind: str, hooks: Any, node: int, output: int) -> None:
        """Lay observers around the hooks in ``hooks``; a dict that does not exist, or holds none, is left alone."""
        if not hooks or node not in watched.survey.ways:
            return
        stage = self._known.get(id(hooks))
        if stage is None:
            stage = self._known[id(hooks)] = HookDictObserver(self.session, kind, hooks, node, output)
            stage.lay()
        self._use(watched, stage)

    def join(self, watched: RunningPass, stage: HookDictObserver, observer: Observer) -> None:
        """``observer`` was registered on a node, where its ``stage`` or that of a pass around this one stands."""
        known = self._known.setdefault(id(stage.dict), stage)
        if known is not stage:
            del stage.dict[observer]
        elif len(stage.dict) > 1:
            stage.lay()
        self._use(watched, known)

    def observe_modules(self, watched: RunningPass) -> None:
        """Lay observers into the lists of full backward hooks, which hang on two nodes of each call."""
        ends: dict[Any, dict[bool, HookDictObserver]] = {}
        for stage in [stage for stage in watched.stages if stage.kind == "node_post_hook" and len(stage.dict) > 1]:
            for _, hook in stage.user_hooks():
                found = unwrap_hook(hook)
                if found is not None and found.kind == "module":
                    ends.setdefault(found.function, {})[found.at_output] = stage
        for hook, stages in ends.items():
            # Where no input needs a gradient, there is no node at the inputs, and both lists run at the output.
            at_output, at_input = stages.get(True, stages.get(False)), stages.get(False, stages.get(True))
            for kind, hooks, end in (
                ("full_backward_pre_hook", hook.user_pre_hooks, at_output),
                ("full_backward_hook", hook.user_hooks, at_input),
            ):
                if hooks and end is not None:
                    self._observe_list(watched, kind, hooks, hook.module, end.node)

    def _observe_list(
        self, watched: RunningPass, kind: str, hooks: list[Any], module: torch.nn.Module, node: int
    ) -> None:
        stage, call = self._known.get(id(hooks)), self.calls.call_of(module, node)
        if stage is None:
            stage = self._known[id(hooks)] = HookListObserver(self.session, kind, hooks, node, call)
            stage.lay()
        self._use(watched, stage)

    def _use(self, watched: RunningPass, stage: HookDictObserver) -> None:
        if stage not in watched.stages:
            watched.stages.add(stage)
            stage.users += 1
        for entry in stage.user_hooks() if len(stage.dict) > 1 else ():
            watched.seen.careful = True
            watched.seen.met.meet(stage, entry)

    # -- hooks that are registered meanwhile

    def lays_in(self, hooks: Any) -> bool:
        """Whether observers stand in the dict ``hooks``."""
        return id(hooks) in self._known

    def settle_down(self) -> None:
        """Stand in front of every node of the passes that run, since hooks have come up on the way."""
        self.session.disturbed = False
        with Uninterrupted():
            for watched in self.running:
                watched.nodes.wake(watched)

    def registered(self, hooks: Any) -> None:
        """A hook was added to the dict of a node on which no observers stand but that which stands on all."""
        with Uninterrupted():
            for watched in self.running:
                watched.nodes.registered(watched, hooks)

    def lay_anew(self, hooks: Any) -> None:
        """A hook was added to a dict in which observers stand; stages already running are unaffected."""
        with Uninterrupted():
            self._known[id(hooks)].lay()
        for watched in self.running:
            watched.seen.careful = True

    def release(self, watched: RunningPass) -> None:
        """A pass is over: the stages that no other uses are lifted."""
        release(watched.stages, self._known)
