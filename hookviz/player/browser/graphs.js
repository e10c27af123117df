// All pictures of a trace that is not large; or two graphs beside each other: what is compared with, and what is shown.

import { listen, make, unpack } from "./dom.js";
import { fitPictures, follow, hasLayers, makePicture } from "./graph.js";
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

/** All passes of the recording, of which one is shown; and the same with layers, once somebody asks for them. */
function makeGraph({ model, root, svgs, frames, beside, pins, struck, label, go, driver, signal }) {
  const pane = make("div", "hv-graph");
  const put = (drawn, texts) => drawn.map((svg, k) => {
    const own = (some) => some?.map((frame, step) => inPass(frame, (frames[step].picture ?? 0) === k, texts));
    const picture = makePicture(svg, label, own(frames), { was: own(beside?.frames), pins, struck });
    pane.append(picture.holder);
    return picture;
  });
  const sets = [put(svgs, (frame) => frame.texts)];
  let now = driver.now().step;
  // Both layers are in the same drawing; without the nodes, their lists are left out of it.
  const wanted = () => (model.get("tensors") ? 2 : model.get("nodes") ? 1 : 0);
  const pictures = () => sets[wanted()] ?? sets[0];
  const picture = () => pictures()[Math.min(frames[now].picture ?? 0, svgs.length - 1)];
  const paint = (step) => {
    now = step;
    for (const other of sets.flat()) other.holder.hidden = other !== picture();
    picture()?.paint(step);
    picture()?.align();
    follow(pane, picture()?.elements.get(frames[step].on[0]));
  };
  // In pixels: a little more than 18, since sizes on the page are rounded. Else a picture that can be seen whole may
  // have letters that are a little smaller; two beside each other are a little smaller anyway.
  const letters = () => (model.get("large") ? { smallest: 18.1 } : { smallest: root.classList.contains("hv-split") ? 11 : 12, least: 10.5 });
  const fit = fitPictures(pane, pictures, letters, () => paint(now), signal);
  const show = async () => {
    pane.classList.toggle("hv-no-lists", !model.get("nodes"));
    if (wanted() && !sets[1] && hasLayers(model)) {
      const drawn = await unpack(model.get("layers"));
      sets[1] ??= put(drawn[0], (frame) => frame.texts);
      sets[2] ??= put(drawn[1], (frame) => ({ ...frame.texts, ...frame.facts }));
    }
    fit();
    pane.dispatchEvent(new Event("hv-drawn", { bubbles: true }));
  };
  driver.onChange("change:tensors change:nodes change:large", show);
  show();
  listen(pane, "click", (event) => {
    const step = event.target.closest(".hv-switch-pin") ? undefined : picture()?.stepAt(event.target, now);
    if (step !== undefined) go(step);
  }, signal);
  return { pane, paint };
}

/** A node has the same id in every pass: what another pass does to it is none of this picture's business. */
function inPass(frame, mine, texts) {
  return mine ? { ...frame, texts: texts(frame) } : { ...frame, on: [], near: [], texts: {} };
}
