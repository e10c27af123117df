// Steps: which is next, what state a thing is in at one, and what a text says by then. The node tests run this file.

/** @import { Step } from "./types" */
/** @import { Message } from "./payload" */

/** @typedef {"todo" | "now" | "done" | "begun"} State */

/**
 * The state of a thing at a step, given the steps that are about it.
 * @param {number[]} steps
 * @param {number} step
 * @returns {State}
 */
export function stateAt(steps, step) {
  if (steps.includes(step)) return "now";
  return steps[0] < step ? "done" : "todo";
}

/**
 * The state of a box with many steps inside, given as unbroken rows: it may also have begun and go on later.
 * @param {[number, number][]} spans
 * @param {number} step
 * @returns {State}
 */
export function stateIn(spans, step) {
  const last = spans.at(-1);
  if (!last || step < spans[0][0]) return "todo";
  if (isWithin(spans, step)) return "now";
  return last[1] < step ? "done" : "begun";
}

/**
 * @param {[number, number][]} spans
 * @param {number} step
 */
export const isWithin = (spans, step) => spans.some(([first, last]) => first <= step && step <= last);

/**
 * The last text that was set up to a step; nothing before the first.
 * @param {[number, Message][]} changes
 * @param {number} step
 * @returns {Message}
 */
export function textAt(changes, step) {
  /** @type {Message} */
  let text = "";
  for (const [from, next] of changes) if (from <= step) text = next;
  return text;
}

/**
 * The step that a click goes to: the next one of these, from the first again after the last.
 * @param {number[]} steps
 * @param {number} step
 */
export const nextStepAmong = (steps, step) => steps.find((other) => other > step) ?? steps[0];

/**
 * The nearest hook's step in one direction, or the step itself.
 * @param {Step[]} steps
 * @param {number} step
 * @param {1 | -1} direction
 */
export function nearestHookStep(steps, step, direction) {
  for (let at = step + direction; at >= 0 && at < steps.length; at += direction) {
    if (steps[at].glyph === "hook") return at;
  }
  return step;
}

/**
 * A linked control may send anything: a fraction, a number past the end.
 * @param {number} step
 * @param {number} count
 */
export const clampStep = (step, count) => Math.max(0, Math.min(count - 1, Math.round(step) || 0));

/**
 * Where an action leads. Of several runs on one timeline, the ends are those of the run shown, or of both where two
 * are side by side.
 * @param {string} action
 * @param {Step[]} steps
 * @param {number} step
 * @param {boolean} [sideBySide]
 */
export function targetStep(action, steps, step, sideBySide = false) {
  /** @param {Step} other */
  const isStepVisible = ({ kind }) => sideBySide || kind !== "absent";
  /** @type {{ [action: string]: number }} */
  const places = {
    first: steps.findIndex(isStepVisible),
    last: steps.findLastIndex(isStepVisible),
    previous: step - 1,
    next: step + 1,
    previousHook: nearestHookStep(steps, step, -1),
    nextHook: nearestHookStep(steps, step, 1),
  };
  return clampStep(places[action] ?? step, steps.length);
}

/**
 * What happens when the time of a step is over.
 * @param {number} step
 * @param {number} count
 */
export function positionAfterPause(step, count) {
  const next = clampStep(step + 1, count);
  return { step: next, playing: next < count - 1 };
}

/**
 * Where playing starts: at the end, from the beginning.
 * @param {number} step
 * @param {number} count
 */
export const playStart = (step, count) => (step >= count - 1 ? 0 : step);

/**
 * How long a step stays, in milliseconds.
 * @param {number} speed
 */
export const pauseMilliseconds = (speed) => 1200 / (speed > 0 ? speed : 1);

/**
 * The kind of a step in the legend; a seed is shown as a node.
 * @param {{ glyph: string }} step
 */
export const legendKind = ({ glyph }) => glyph.replace("seed", "node");

/**
 * The kinds that occur, in the order in which they first do.
 * @param {{ glyph: string }[]} steps
 */
export const legendKinds = (steps) => [...new Set(steps.map(legendKind))];

/**
 * The old text where it is not the same, else nothing.
 * @param {string} was
 * @param {string} now
 */
export const oldTextIfChanged = (was, now) => (was && was !== now ? was : "");
