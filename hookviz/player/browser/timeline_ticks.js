// A timeline of shapes: one tick a step.

import { find, make, mark } from "./dom.js";
import { stateAt } from "./stepping.js";
import { dragOn, glyphShape, makeSlider, sliderValue } from "./timeline.js";

/** @import { Context } from "./types" */

const RING = "M-10,0a10,10 0 1 0 20,0a10,10 0 1 0 -20,0z";

/**
 * @param {Context} context
 * @returns {import("./timeline.js").Timeline}
 */
export function makeTicks(context) {
  const { run: { steps }, open: { content }, driver, signal } = context;
  const track = make("div", "hv-track");
  const ticks = steps.map(({ glyph }) => glyphShape(glyph, "hv-tick"));
  ticks.forEach((tick, i) => tick.classList.toggle("hv-absent", steps[i].kind === "absent"));
  if (ticks[content.mark]) addRing(ticks[content.mark]);
  const pane = makeSlider(context);
  track.style.setProperty("--hv-count", String(steps.length));
  track.append(make("div", "hv-rail"), make("div", "hv-rail hv-rail-done"), ...ticks);
  pane.append(track);
  dragOn(pane, track, (place) => driver.go(Math.min(steps.length - 1, Math.floor(place * steps.length))), signal);
  return { pane, paint: tickPainter(context, pane, track, ticks), show: () => {}, actions: {} };
}

/**
 * Marks where a difference begins.
 * @param {SVGElement} tick
 */
function addRing(tick) {
  const ring = /** @type {Element} */ (find(tick, "path").cloneNode());
  mark(ring, { d: RING, class: "hv-ring" });
  tick.prepend(ring);
}

/**
 * @param {Context} context
 * @param {HTMLElement} pane
 * @param {HTMLElement} track
 * @param {SVGElement[]} ticks
 */
function tickPainter(context, pane, track, ticks) {
  /** @type {string[]} */
  const states = [];
  return (/** @type {number} */ step) => {
    ticks.forEach((tick, i) => {
      const state = `hv-${stateAt([i], step)}`;
      if (states[i] === state) return;
      if (states[i]) tick.classList.remove(states[i]);
      tick.classList.add(state);
      states[i] = state;
    });
    track.style.setProperty("--hv-at", String(step));
    mark(pane, sliderValue(context, step));
    if (pane.scrollWidth > pane.clientWidth) {
      pane.scrollLeft = ((step + 0.5) / ticks.length) * pane.scrollWidth - pane.clientWidth / 2;
    }
  };
}
