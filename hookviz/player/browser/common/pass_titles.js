// The titles of passes: their numbers, and the losses at which they start. The node tests run this file.

/** @import { Context } from "./types" */

/** @typedef {(picture: number) => string} TitleOf returns the title of a pass, given the index of its picture */
/** @typedef {{ run: Pick<Context["run"], "passNumbers" | "losses">, say: Context["say"] }} Passes */

/**
 * Returns what writes the titles of passes, the longest form first: `Pass 7 · loss 0.31`, `7 · loss 0.31`, `Pass 7`.
 * @param {Passes} passes
 * @returns {TitleOf[]}
 */
export function makePassTitles({ run, say }) {
  /** @param {number} picture */
  const facts = (picture) => ({ number: run.passNumbers[picture].toLocaleString("en"), loss: run.losses[picture] });
  /** @type {TitleOf} */
  const plain = (picture) => say("pass", facts(picture));
  if (run.losses.every((loss) => !loss)) return [plain];
  /** @type {(label: string) => TitleOf} */
  const withLoss = (label) => (picture) => (run.losses[picture] ? say(label, facts(picture)) : plain(picture));
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
  const pictures = Array.from({ length: count }, (_, picture) => picture);
  const widths = titles.map((titleOf) => count * Math.max(...pictures.map((one) => measure(titleOf(one)))));
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
  const number = passNumbers[steps[step].picture];
  const isWhole = passNumbers[count - 1] === count;
  return `${position} · ${isWhole ? say("pass_of", { number, count }) : say("pass", { number })}`;
}
