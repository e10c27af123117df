"""The compiled regions that run in a recording: hookviz does not observe the calls in them."""

import torch

from hookviz.recorder.modules.module_call import ModuleCall
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.torch.compiled_regions import EXPORT, CompilerWork, RegionSwitch, runs_compiled
from hookviz.trace import TraceData
from hookviz.trace.traversal import list_outer_paths
from hookviz.trace.unfired_rows import CompiledPlace


class CompiledRuns:
    """Knows which modules ran compiled, and what torch compiled while they did."""

    def __init__(self, trace: TraceData, modules: ModuleRegistry) -> None:
        self.trace, self.modules = trace, modules
        self.names: set[str] = set()
        """The names of the functions and modules that ran compiled: nothing in a module itself says so."""
        self._open: tuple[int, RegionSwitch, CompilerWork] | None = None
        """The step of the region that runs, the region, and what the compiler had done before it."""

    def begin(self, region: RegionSwitch, call: ModuleCall | None) -> str:
        """Note a region that is about to get its step; return its name: of the compiled module, or of the function."""
        module = region.module
        name = region.name if module is None else self.modules.known_name(module) or region.name
        if module is not None:
            self.modules.name_if_held(module)
            self.names.add(self.modules.label(module))
        if call is not None and runs_compiled(call.module):
            name = self.trace.plain_call(call.index)
            self.names.add(self.modules.label(call.module))
        self.names.add(f"{name}()")
        self._open = None if region.name == EXPORT else (len(self.trace.rows), region, CompilerWork.read(region.codes))
        return name

    def end(self) -> None:
        """Note what torch compiled in the region that ends."""
        opened, self._open = self._open, None
        if opened is not None:
            step, region, before = opened
            built = CompilerWork.read(region.codes).since(before)
            self.trace.rows[step] = self.trace.rows[step]._replace(built=built)

    def find_place(self, name: str, module: torch.nn.Module | None) -> CompiledPlace | None:
        """Return whether a module ran compiled, or is inside one that did."""
        if not self.names.isdisjoint(list_outer_paths(name)):
            return "inside"
        is_compiled = module is not None and runs_compiled(module) and bool(self.names)
        return "itself" if is_compiled or name in self.names else None
