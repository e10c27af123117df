// A timeline with a shape for each step.

import { findElement, makeElement, setAttributes } from "../common/dom.js";
import { chooseTitles, makePassTitles } from "../common/pass_titles.js";
import { stateAt } from "../common/stepping.js";
import { hideLater } from "../predict/questions.js";
import { makeLegend } from "./timeline_legend.js";
import { passMarks } from "./timeline_columns.js";
import { SIGNS } from "../panel/signs.js";
import { dragOn, hoverText, makeGlyph, makeSlider, sliderValue } from "./timeline_slider.js";

/** @import { Context } from "../common/types" */

const RING = "M-10,0a10,10 0 1 0 20,0a10,10 0 1 0 -20,0z";

/**
 * @param {Context} context
 * @returns {import("./timeline_slider.js").Timeline}
 */
export function makeTicks(context) {
  const { run: { steps }, content, driver, signal } = context;
  const track = makeElement("div", "hv-track");
  const ticks = steps.map(({ glyph, sign }) => makeGlyph(sign ?? glyph, "hv-tick"));
  ticks.forEach((tick, i) => tick.classList.toggle("hv-absent", steps[i].kind === "absent"));
  if (ticks[content.first_difference]) addRing(ticks[content.first_difference]);
  const pane = makeSlider(context);
  track.style.setProperty("--hv-count", String(steps.length));
  track.append(makeElement("div", "hv-rail"), makeElement("div", "hv-rail hv-rail-done"), ...ticks);
  track.append(...makePassMarks(context));
  pane.append(track);
  const stepAt = (/** @type {number} */ position) => Math.min(steps.length - 1, Math.floor(position * steps.length));
  const at = (/** @type {number} */ position) => driver.goTo(stepAt(position));
  dragOn(pane, track, { at, textAt: (position) => hoverText(context, stepAt(position)) }, signal);
  const paint = makeTickPainter(context, pane, track, ticks);
  driver.onChange("change:predict", () => paint(driver.position().step));
  return { pane, legend: makeLegend(context), paint };
}

/** The least width of a step in the style sheet, and of a letter in the title of a pass, in pixels. */
const [TICK_WIDTH, LETTER_WIDTH] = [13, 8];
/** @param {string} title */
const measureTitle = (title) => LETTER_WIDTH * (title.length + 2);

/**
 * Makes a line where each pass begins, with its title if there is room.
 * @param {Context} context
 */
function makePassMarks(context) {
  const { steps, views } = context.run;
  if (views.length < 2) return [];
  const width = steps.length * TICK_WIDTH;
  const titleOf = chooseTitles(makePassTitles(context), views.length, width, measureTitle);
  const titleWidth = Math.max(...views.map((_, view) => measureTitle(titleOf(view))));
  return passMarks(steps, width, titleWidth).map(({ view, left, isTitled }) => {
    const mark = makeElement("span", "hv-pass", isTitled ? titleOf(view) : "");
    mark.style.left = `${(left / width) * 100}%`;
    return mark;
  });
}

/**
 * Marks the first step that differs.
 * @param {SVGElement} tick
 */
function addRing(tick) {
  const ring = /** @type {Element} */ (findElement(tick, "path").cloneNode());
  setAttributes(ring, { d: RING, class: "hv-ring" });
  tick.prepend(ring);
}

/**
 * @param {Context} context
 * @param {HTMLElement} pane
 * @param {HTMLElement} track
 * @param {SVGElement[]} ticks
 */
function makeTickPainter(context, pane, track, ticks) {
  /** @type {string[]} */
  const states = [];
  const signs = context.run.steps.map(({ sign }) => sign);
  return (/** @type {number} */ step) => {
    const shown = hideLater(context);
    ticks.forEach((tick, i) => {
      const { sign } = shown[i];
      const state = `hv-${stateAt([i], step)}${sign ? ` hv-glyph-${sign}` : ""}`;
      if (states[i] === state) return;
      if (states[i]) tick.classList.remove(...states[i].split(" "));
      tick.classList.add(...state.split(" "));
      if (sign && sign !== signs[i]) setAttributes(findElement(tick, "path:last-of-type"), { d: SIGNS[sign] });
      signs[i] = sign;
      states[i] = state;
    });
    track.style.setProperty("--hv-at", String(step));
    setAttributes(pane, sliderValue(context, step));
    if (pane.scrollWidth > pane.clientWidth) {
      pane.scrollLeft = ((step + 0.5) / ticks.length) * pane.scrollWidth - pane.clientWidth / 2;
    }
  };
}
