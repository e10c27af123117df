"""A stand-in for the programs ``dot`` and ``neato``, using the Graphviz library in pygraphviz.

TorchLens calls them, and they may not be installed. Like the programs, this starts without torch.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def install(folder: Path) -> None:
    """Write the programs into ``folder``, which then goes first on the PATH."""
    for engine in ("dot", "neato"):
        program = folder / engine
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" {engine} "$@"\n')
        program.chmod(0o755)


def draw(source: str, engine: str, format: str, attributes: Sequence[str] = ()) -> bytes:
    """Lay out ``source`` with ``engine`` and render it as ``format``, with attributes such as ``splines=line``.

    Raises:
        ValueError: Graphviz cannot read or lay out the source, or does not know the format.
    """
    import pygraphviz
    from pygraphviz import graphviz

    drawing = pygraphviz.AGraph(string=source)
    drawing.graph_attr.update(attribute.split("=", 1) for attribute in attributes)
    context = graphviz.gvContextWithBuiltins()
    if graphviz.gvLayout(context, drawing.handle, engine.encode()):
        raise ValueError(f"{engine} cannot lay this out")
    failed, drawn = graphviz.gvRenderData(context, drawing.handle, format.encode())
    if failed:
        raise ValueError(f"there is no format {format!r}")
    return bytes(drawn)


def main(engine: str, *arguments: str) -> None:
    """Do the same as ``dot -Tsvg -o out.svg in.dot``; the first argument is the engine."""
    parser = argparse.ArgumentParser(prog=engine)
    parser.add_argument("-T", dest="format", default="dot")
    parser.add_argument("-G", dest="attributes", action="append", default=[])
    parser.add_argument("-o", dest="out", type=Path)
    parser.add_argument("-n", dest="placed", help="the nodes have their places")
    parser.add_argument("source", nargs="?", type=Path)
    # The number of -n is optional; argparse would take the next argument for it.
    options = parser.parse_args(["-n1" if word == "-n" else word for word in arguments])
    # A warning about the fonts of a machine is no error of dot's, and torchexplorer takes all that it prints for one.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    source = options.source.read_text(encoding="utf-8") if options.source else sys.stdin.read()
    drawn = draw(source, f"nop{options.placed}" if options.placed else engine, options.format, options.attributes)
    if options.out:
        options.out.write_bytes(drawn)
    else:
        sys.stdout.buffer.write(drawn)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # freeing the layout crashes on some graphs
