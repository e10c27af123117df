// The titles of passes: their numbers, and the losses at which they start. The node tests run this file.

/** @import { Context } from "./types" */

/** @typedef {(view: number) => string} TitleOf returns the title of a pass, given the index of its view */
/** @typedef {{ run: Pick<Context["run"], "passNumbers" | "losses">, say: Context["say"] }} Passes */

/**
 * Returns what writes the titles of passes, the longest form first: `Pass 7 · loss 0.31`, `7 · loss 0.31`, `Pass 7`.
 * @param {Passes} passes
 * @returns {TitleOf[]}
 */
export function makePassTitles({ run, say }) {
  /** @param {number} view */
  const facts = (view) => ({ number: run.passNumbers[view].toLocaleString("en"), loss: run.losses[view] });
  /** @type {TitleOf} */
  const plain = (view) => say("pass", facts(view));
  if (run.losses.every((loss) => !loss)) return [plain];
  /** @type {(label: string) => TitleOf} */
  const withLoss = (label) => (view) => (run.losses[view] ? say(label, facts(view)) : plain(view));
  return [withLoss("pass_loss"), withLoss("number_loss"), plain];
}

/**
 * Returns the longest form whose titles fit beside each other, all of them or, in a shorter form, every second one; else
 * the shortest one.
 * @param {TitleOf[]} titles
 * @param {number} count how many passes there are
 * @param {number} width
 * @param {(title: string) => number} measure returns the width that a title needs
 */
export function chooseTitles(titles, count, width, measure) {
  const views = Array.from({ length: count }, (_, view) => view);
  const widths = titles.map((titleOf) => count * Math.max(...views.map((one) => measure(titleOf(one)))));
  const fitting = widths.findIndex((needed, form) => needed <= width * (form ? 2 : 1));
  return titles[fitting < 0 ? titles.length - 1 : fitting];
}

/**
 * Returns where a step is: its number, and that of its pass if there are several. If the recording lacks passes, their
 * numbers say more than how many it has.
 * @param {{ run: Pick<Context["run"], "steps" | "passNumbers">, say: Context["say"] }} passes
 * @param {number} step
 */
export function sayPosition({ run, say }, step) {
  const { steps, passNumbers } = run;
  const count = passNumbers.length;
  const position = say("step_of", { step: step + 1, steps: steps.length });
  if (count < 2) return position;
  const number = passNumbers[steps[step].view];
  const isWhole = passNumbers[count - 1] === count;
  return `${position} · ${isWhole ? say("pass_of", { number, count }) : say("pass", { number })}`;
}
