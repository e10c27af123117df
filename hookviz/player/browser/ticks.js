// The timeline of a trace that is not large: one tick a step; click or drag to go there.

import { say, stateAt } from "./logic.js";
import { make, mark } from "./dom.js";
import { dragOn, glyphShape } from "./timeline.js";

const RING = "M-10,0a10,10 0 1 0 20,0a10,10 0 1 0 -20,0z";

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
