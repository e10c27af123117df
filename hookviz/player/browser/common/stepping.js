// Steps: movements between them, and the states of elements and texts at a step. The node tests run this file.

/** @import { Step } from "./types" */
/** @import { PictureText } from "./payload" */

/** @typedef {"todo" | "now" | "done" | "begun"} State */

/**
 * Returns the state of an element at a step, given the steps of the element.
 * @param {number[]} steps
 * @param {number} step
 * @returns {State}
 */
export function stateAt(steps, step) {
  if (steps.includes(step)) return "now";
  return steps[0] < step ? "done" : "todo";
}

/**
 * Returns the state of a closed box at a step, given the spans of its steps; between two spans it is begun.
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
 * Returns the last text that was set up to a step; undefined before the first.
 * @param {PictureText[]} changes
 * @param {number} step
 */
export const textAt = (changes, step) => changes.findLast(([from]) => from <= step);

/**
 * Returns the next of some steps; after the last, the first.
 * @param {number[]} steps
 * @param {number} step
 */
export const nextStepAmong = (steps, step) => steps.find((other) => other > step) ?? steps[0];

/**
 * Returns the nearest step of a hook in one direction; if there is none, the step itself.
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
 * Returns a valid step: a linked control may send a fraction or a number past the end.
 * @param {number} step
 * @param {number} count
 */
export const clampStep = (step, count) => Math.max(0, Math.min(count - 1, Math.round(step) || 0));

/**
 * Returns the target step of a movement. With several runs on one timeline, the first and last step are those of the
 * run that is shown, or of either run if two are side by side.
 * @param {string} action
 * @param {Step[]} steps
 * @param {number} step
 * @param {boolean} [sideBySide]
 */
export function targetStep(action, steps, step, sideBySide = false) {
  /** @param {Step} other */
  const isStepVisible = ({ kind }) => sideBySide || kind !== "absent";
  /** @type {{ [action: string]: number }} */
  const targets = {
    first: steps.findIndex(isStepVisible),
    last: steps.findLastIndex(isStepVisible),
    previous: step - 1,
    next: step + 1,
    previousHook: nearestHookStep(steps, step, -1),
    nextHook: nearestHookStep(steps, step, 1),
  };
  return clampStep(targets[action] ?? step, steps.length);
}

/**
 * Returns the position after the pause of a step. From hook to hook, the last step comes after the last hook.
 * @param {Step[]} steps
 * @param {number} step
 * @param {boolean} hooksOnly
 */
export function positionAfterPause(steps, step, hooksOnly) {
  const last = steps.length - 1;
  const hook = nearestHookStep(steps, step, 1);
  const target = hook === step ? last : hook;
  const next = clampStep(hooksOnly ? target : step + 1, steps.length);
  return { step: next, playing: next < last };
}

/**
 * Returns the step where playing starts: the first one if the player is at the end.
 * @param {number} step
 * @param {number} count
 */
export const playStart = (step, count) => (step >= count - 1 ? 0 : step);

/**
 * Returns the pause of a step in milliseconds.
 * @param {number} speed
 */
export const pauseMilliseconds = (speed) => 1200 / (speed > 0 ? speed : 1);

/**
 * Returns the kind of a step in the legend: of a hook, what it did; a seed counts as a node.
 * @param {{ glyph: string, sign?: string | null }} step
 */
export const legendKind = ({ glyph, sign }) => sign ?? glyph.replace("seed", "node");

/**
 * Returns the kinds that occur, in the order of their first step.
 * @param {{ glyph: string, sign?: string | null }[]} steps
 */
export const legendKinds = (steps) => [...new Set(steps.map(legendKind))];

/**
 * Returns the old text if it differs from the new one; else an empty text.
 * @param {string} was
 * @param {string} now
 */
export const oldTextIfChanged = (was, now) => (was && was !== now ? was : "");
