// What both timelines are made of: a slider, the shapes of steps, and a pointer that is dragged along.

import { listen, makeElement, makeShape } from "../common/dom.js";
import { sayPosition } from "../common/pass_titles.js";
import { SIGNS } from "../panel/signs.js";

/** @import { Context } from "../common/types" */

/**
 * @typedef {object} Timeline
 * @property {HTMLElement} pane
 * @property {HTMLElement} legend
 * @property {(step: number) => void} paint
 */

const ROUND = "M-5,0a5,5 0 1 0 10,0a5,5 0 1 0 -10,0z";
/** @type {{ [glyph: string]: string }} */
export const GLYPHS = {
  node: ROUND,
  seed: ROUND,
  module: "M-6.5,-3.5h13v7h-13z",
  optimizer: "M-6,-4H6L0,6z",
  ...SIGNS,
  retain: "M-4.5,-4.5h9v9h-9z",
  grad: "M0,-6V2.5M-4,-1L0,3L4,-1M-6,6.5H6",
  exception: "M0,-7V1.5M0,5.5V6",
  note: "M0,-5.5L6,5H-6z",
};

/**
 * @param {string} glyph
 * @param {string} name its CSS classes
 */
export function makeGlyph(glyph, name) {
  const kind = glyph in GLYPHS ? glyph : "note";
  return makeShape(GLYPHS[kind], `${name} hv-glyph-${kind}`);
}

/**
 * Reports the position of the pointer on the track while it is pressed: across from 0 to 1, and down in pixels. Shows
 * as hover text what is there.
 * @param {HTMLElement} pane
 * @param {HTMLElement} track
 * @param {{ at: (position: number, y: number) => void, textAt: (position: number) => string }} acts
 * @param {AbortSignal} signal
 */
export function dragOn(pane, track, { at, textAt }, signal) {
  /** @param {PointerEvent} event */
  const across = ({ clientX }) => {
    const { left, width } = track.getBoundingClientRect();
    return Math.max(0, Math.min(0.9999, (clientX - left) / width));
  };
  /** @param {PointerEvent} event */
  const move = (event) => at(across(event), event.clientY - track.getBoundingClientRect().top);
  listen(pane, "pointerdown", (event) => {
    if (event.button) return;
    pane.setPointerCapture(event.pointerId);
    move(event);
  }, signal);
  listen(pane, "pointermove", (event) => {
    if (pane.hasPointerCapture(event.pointerId)) move(event);
    const text = textAt(across(event));
    if (pane.title !== text) pane.title = text;
  }, signal);
}

/**
 * Makes a slider, so that the timeline is one tab stop and screen readers announce the step.
 * @param {Context} context
 * @param {string} [name] more CSS classes
 */
export function makeSlider({ say, run }, name = "") {
  const range = { "aria-valuemin": 1, "aria-valuemax": run.steps.length };
  const label = say("timeline");
  return makeElement("div", `hv-timeline ${name}`.trim(), "", { role: "slider", tabindex: 0, "aria-label": label, ...range });
}

/**
 * Returns the hover text of a step: what happens in it, unless one is to predict that, and the keys that go on.
 * @param {Pick<Context, "run" | "say" | "model" | "driver">} context
 * @param {number} step
 */
export function hoverText({ run, say, model, driver }, step) {
  const { words, sign } = run.steps[step] ?? {};
  const isHidden = model.get("predict") && step > driver.position().step;
  const title = words && !isHidden ? `: ${words.title}` : "";
  return `${say("step_of", { step: step + 1, steps: run.steps.length })}${title} (${sign && !isHidden ? "[ ]" : "← →"})`;
}

/**
 * Returns the attributes with the value of the slider.
 * @param {Context} context
 * @param {number} step
 */
export function sliderValue({ say, run }, step) {
  const { words } = run.steps[step];
  const count = sayPosition({ say, run }, step);
  return { "aria-valuenow": step + 1, "aria-valuetext": `${count}: ${words ? words.title : ""}` };
}
