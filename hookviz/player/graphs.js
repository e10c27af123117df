// One graph, or two beside each other: what is compared with on the left, and what is shown on the right.

import { make } from "./dom.js";
import { makeGraph } from "./graph.js";
import { switchPins } from "./switches.js";

export function makeGraphs(tools) {
  const { model, root, beside, title } = tools;
  const split = Boolean(beside && model.get("split"));
  root.classList.toggle("hv-split", split);
  const graph = makeGraph({ ...tools, pins: switchPins(model), struck: !split });
  if (!split) return graph;
  const plain = { placeOf: () => -1, isOff: () => false };
  const other = makeGraph({ ...tools, frames: beside.frames, beside: tools, pins: plain, struck: false });
  const pane = make("div", "hv-pair");
  pane.append(captioned(other.pane, beside.label), captioned(graph.pane, title));
  return { pane, paint: (step) => [other, graph].forEach((one) => one.paint(step)) };
}

function captioned(pane, text) {
  const figure = make("figure", "hv-side");
  figure.append(make("figcaption", "", text), pane);
  return figure;
}
