// What every timeline has: a shape for each kind of thing, and a pointer that is dragged along.

import { kindsOf, say } from "./logic.js";
import { listen, make, mark, shape } from "./dom.js";

const ROUND = "M-5,0a5,5 0 1 0 10,0a5,5 0 1 0 -10,0z";
export const GLYPHS = {
  node: ROUND,
  seed: ROUND,
  module: "M-6.5,-3.5h13v7h-13z",
  optimizer: "M-6,-4H6L0,6z",
  hook: "M0,-6.5L6.5,0L0,6.5L-6.5,0z",
  retain: "M-4.5,-4.5h9v9h-9z",
  grad: "M0,-6V2.5M-4,-1L0,3L4,-1M-6,6.5H6",
  exception: "M-5,-5L5,5M5,-5L-5,5",
  note: "M0,-5.5L6,5H-6z",
};

export function glyphShape(glyph, name) {
  const known = glyph in GLYPHS ? glyph : "note";
  return shape(GLYPHS[known], `${name} hv-glyph-${known}`);
}

/** Reports where on the track the pointer is, from 0 to 1, while it is down. */
export function dragOn(pane, track, at, signal) {
  const move = (event) => {
    const { left, width } = track.getBoundingClientRect();
    at(Math.max(0, Math.min(0.9999, (event.clientX - left) / width)));
  };
  listen(pane, "pointerdown", (event) => {
    if (event.button) return;
    pane.setPointerCapture(event.pointerId);
    move(event);
  }, signal);
  listen(pane, "pointermove", (event) => pane.hasPointerCapture(event.pointerId) && move(event), signal);
}

/** The shapes that occur. */
export function makeLegend({ frames, words }) {
  const list = make("ul", "hv-legend");
  for (const glyph of kindsOf(frames)) {
    const entry = make("li");
    entry.append(glyphShape(glyph, "hv-tick hv-done"), make("span", "", say(words, `legend_${glyph}`)));
    list.append(entry);
  }
  return list;
}
