// What a flipped switch changes in the end: the gradients that are written, before and after. The node tests run this file.

/** @import { Say } from "../common/labels.js" */
/** @import { LoadedRun } from "../common/types" */

/** @typedef {{ on: string, was: string, now: string }} Change */

/** The most gradients that the sentence lists, and the longest value that it shows. */
const [MAX_CHANGES, MAX_LENGTH] = [4, 24];
/** The `.grad` of a tensor to which no gradient is written, as Python prints it. */
const NO_GRADIENT = "None";

/**
 * Returns a sentence about the gradients that differ from the baseline; empty if their values are not here.
 * @param {LoadedRun} run
 * @param {LoadedRun | null} baseline
 * @param {Say} say
 */
export function describeFlip(run, baseline, say) {
  if (!baseline) return "";
  const [now, was] = [run, baseline].map(finalGradients);
  if (!now.size && !was.size) return "";
  const isComplete = [run, baseline].every(hasAllWords);
  const names = [...new Set([...was.keys(), ...now.keys()])].filter((on) => isComplete || (was.has(on) && now.has(on)));
  const changes = names.map((on) => ({ on, was: was.get(on) ?? NO_GRADIENT, now: now.get(on) ?? NO_GRADIENT }))
    .filter((change) => change.was !== change.now);
  const { label } = run;
  if (!changes.length) return isComplete ? say("flip_none", { label }) : "";
  const texts = changes.slice(0, MAX_CHANGES).map((change) => describeChange(change, say));
  if (changes.length > MAX_CHANGES) texts.push(say("flip_more", { count: changes.length - MAX_CHANGES }));
  return say("flip_result", { label, changes: texts.join(", ") });
}

/**
 * Returns whether the words of each step that writes a `.grad` are here: those of a large trace come when they are needed.
 * @param {Pick<LoadedRun, "steps">} run
 */
const hasAllWords = ({ steps }) => steps.every(({ kind, words }) => kind !== "accumulate" || Boolean(words));

/**
 * Returns the name of each tensor whose `.grad` is written → its last value.
 * @param {Pick<LoadedRun, "steps">} run
 */
export function finalGradients({ steps }) {
  /** @type {Map<string, string>} */
  const values = new Map();
  for (const { words } of steps) if (words?.writes_grad_of && words.after !== null) values.set(words.writes_grad_of, words.after);
  return values;
}

/**
 * @param {Change} change
 * @param {Say} say
 */
function describeChange({ on, was, now }, say) {
  const isShort = [was, now].every((value) => value.length <= MAX_LENGTH && !value.includes("\n"));
  return isShort ? say("flip_change", { on, was, now }) : say("flip_differs", { on });
}
