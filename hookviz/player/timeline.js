// One tick a step, a shape for each kind of thing; click or drag to go there.

import { say, stateAt } from "./logic.js";
import { listen, make, mark, shape } from "./dom.js";

const ROUND = "M-5,0a5,5 0 1 0 10,0a5,5 0 1 0 -10,0z";
const RING = "M-10,0a10,10 0 1 0 20,0a10,10 0 1 0 -20,0z";
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

/** A slider to a screen reader: one stop for the Tab key, however many ticks. */
export function makeTimeline({ frames, first, words, go, signal }) {
  const track = make("div", "hv-track");
  const ticks = frames.map((frame) => glyphShape(frame.glyph, "hv-tick"));
  ticks.forEach((tick, i) => tick.classList.toggle("hv-absent", frames[i].kind === "absent"));
  if (ticks[first]) addRing(ticks[first]);
  const count = frames.length;
  const range = { "aria-valuemin": 1, "aria-valuemax": count };
  const pane = make("div", "hv-timeline", "", { role: "slider", tabindex: 0, "aria-label": say(words, "timeline"), ...range });
  track.style.setProperty("--hv-count", String(count));
  track.append(make("div", "hv-rail"), make("div", "hv-rail hv-rail-done"), ...ticks);
  pane.append(track);
  dragOn(pane, track, (part) => go(Math.min(count - 1, Math.floor(part * count))), signal);
  return { pane, paint: tickPainter(pane, track, ticks, frames, words) };
}

function glyphShape(glyph, name) {
  const known = glyph in GLYPHS ? glyph : "note";
  return shape(GLYPHS[known], `${name} hv-glyph-${known}`);
}

/** Where the difference begins. */
function addRing(tick) {
  const ring = tick.querySelector("path").cloneNode();
  mark(ring, { d: RING, class: "hv-ring" });
  tick.prepend(ring);
}

function tickPainter(pane, track, ticks, frames, words) {
  const states = [];
  return (step) => {
    ticks.forEach((tick, i) => {
      const state = `hv-${stateAt([i], step)}`;
      if (states[i] === state) return;
      if (states[i]) tick.classList.remove(states[i]);
      tick.classList.add(state);
      states[i] = state;
    });
    track.style.setProperty("--hv-at", String(step));
    const count = say(words, "step_of", { step: step + 1, steps: frames.length });
    mark(pane, { "aria-valuenow": step + 1, "aria-valuetext": `${count}: ${frames[step].title}` });
    if (pane.scrollWidth > pane.clientWidth) {
      pane.scrollLeft = ((step + 0.5) / frames.length) * pane.scrollWidth - pane.clientWidth / 2;
    }
  };
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

/** The shapes that occur, in the order in which they first do; a seed has a node's. */
export function makeLegend({ frames, words }) {
  const list = make("ul", "hv-legend");
  for (const glyph of new Set(frames.map((frame) => frame.glyph.replace("seed", "node")))) {
    const entry = make("li");
    entry.append(glyphShape(glyph, "hv-tick hv-done"), make("span", "", say(words, `legend_${glyph}`)));
    list.append(entry);
  }
  return list;
}
