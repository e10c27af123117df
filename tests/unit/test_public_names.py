"""The public names: none appears or vanishes by accident, and no part of the package hides one."""

from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import FunctionType

import graphviz
import pytest
import torch

import hookviz as hv
import hookviz.course
import hookviz.testing

NAMES = """
    Comparison Figure Finding Hook HookvizWarning Plot Step Trace Value WhatIf
    doctor draw hooks language load record render whatif
"""
CALLBACKS = "FlightRecorder RecordSteps"
COURSE = "Verdict check concept_test keep kept quiz report review"
TESTING = "assert_gradients_reach assert_hooks_fire"

DESCRIBED = """
    animate diff dropped figure findings firings hooks lacks_passes notes pass_number
    pass_numbers player plot rank ranks save statistics steps text to_html to_pandas to_records to_tensorboard why
"""
"""The attributes of a trace that the manual describes."""
ATTRIBUTES = {
    "Trace": f"{DESCRIBED} content",
    "Step": """
        after before effect hook index kind node on output parts pass_id pass_number row scale scales sentence trace
    """,
    "Hook": "distinction file flags kept_in kind label line name on place source source_ total where",
    "Value": """
        block device dtype inf line max mean min nan norm note of row shape statistics text tolist zero
    """,
    "Finding": "about advice cause certainty file hooks is_bad kind line line_role parameters passes sentence severity "
    "step text when",
    "Figure": "digraph pipe render svg",
    "Plot": "figure save svg table title to_html",
    "WhatIf": "before change content hooks notes player ranges to_html traces values without",
    "Comparison": "caption content count first head index lines player sentence texts to_html traces",
}
"""Class → its public attributes; of a figure those that ``graphviz.Digraph`` does not have."""


def run() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    (x * x).backward()


@cache
def make_objects() -> dict[str, object]:
    """Return one object of each public class, by the name of the class."""
    with hv.record() as trace:
        run()
    parts: list[object] = [trace, trace.steps[0], trace.firings[0].hook, trace.steps[0].after]
    shown: list[object] = [trace.figure(), trace.plot(), hv.whatif(run), trace.diff(trace)]
    objects = [*parts, *shown, hv.Finding(None, "nan", "It holds NaN.", "error")]
    return {type(thing).__name__: thing for thing in objects}


def list_attributes(thing: object) -> set[str]:
    inherited = set(dir(graphviz.Digraph())) if isinstance(thing, graphviz.Digraph) else set()
    return {name for name in set(dir(thing)) - inherited if not name.startswith("_")}


def test_names_of_the_package() -> None:
    assert set(hv.__all__) == list_attributes(hv) == set(NAMES.split())
    assert set(hookviz.testing.__all__) == set(TESTING.split())
    assert set(hookviz.course.__all__) == set(COURSE.split())


@pytest.mark.slow
def test_names_of_the_callbacks() -> None:
    from hookviz.integrations import lightning, transformers

    assert set(lightning.__all__) == set(transformers.__all__) == set(CALLBACKS.split())


@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_attributes_of_a_public_class(kind: str) -> None:
    assert list_attributes(make_objects()[kind]) == set(ATTRIBUTES[kind].split())


@pytest.mark.slow
def test_no_part_of_the_package_hides_a_public_name() -> None:
    """A subpackage becomes an attribute of its package once it is imported, and would replace a function there."""
    parts = [part.name for part in walk_packages(hv.__path__, "hookviz.") if not part.name.endswith("__main__")]
    for part in parts:
        import_module(part)
    assert {part.partition(".")[2] for part in parts}.isdisjoint(hv.__all__)
    for name in hv.__all__:
        assert isinstance(getattr(hv, name), FunctionType | type), name
