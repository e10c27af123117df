// Questions for a room: their choices with letters, and the votes for them. The node tests run this file.

import { readNumbers } from "./questions.js";

/** @import { Question } from "../common/payload" */

/** @typedef {{ letter: string, text: string, isRight: boolean, reason: string }} Choice */

/** The most choices that are made of the answer to a number question and of its known mistakes. */
const MAX_NUMBER_CHOICES = 4;

/**
 * Returns the choices of a question. Those of a number question are its answer and the likeliest mistakes, in the order
 * of their numbers, so that their places say nothing.
 * @param {Question} question
 * @returns {Choice[]}
 */
export function choicesOf(question) {
  const { choices, right, reasons, answer = "", mistakes = [] } = question;
  if (choices) return addLetters(choices.map((text, i) => ({ text, isRight: i === right, reason: reasons?.[i] ?? "" })));
  const wrong = mistakes.slice(0, MAX_NUMBER_CHOICES - 1).map(([text, reason]) => ({ text, isRight: false, reason }));
  return addLetters([{ text: answer, isRight: true, reason: "" }, ...wrong].sort((one, other) => compareNumbers(one.text, other.text)));
}

/** @param {Omit<Choice, "letter">[]} choices */
const addLetters = (choices) => choices.map((choice, i) => ({ ...choice, letter: String.fromCharCode(65 + i) }));

/**
 * Compares two texts with numbers: by the first number that differs, None and NaN last.
 * @param {string} one
 * @param {string} other
 */
function compareNumbers(one, other) {
  const [ours, theirs] = [one, other].map((text) => readNumbers(text).map((number) => number ?? NaN));
  const at = ours.findIndex((number, i) => !Object.is(number, theirs[i]));
  if (at < 0) return 0;
  if (Number.isNaN(ours[at])) return 1;
  return Number.isNaN(theirs[at]) ? -1 : ours[at] - theirs[at];
}

/**
 * Returns the number of votes in a typed text; 0 if it has none.
 * @param {string} typed
 */
export const readVotes = (typed) => Number(/^\d{1,5}$/.exec(typed.normalize("NFKC").trim())?.[0] ?? 0);

/**
 * Returns the share of each choice in whole percent; all 0 without votes.
 * @param {number[]} votes
 */
export function sharesOf(votes) {
  const total = votes.reduce((sum, count) => sum + count, 0);
  return votes.map((count) => (total ? Math.round((100 * count) / total) : 0));
}

/**
 * Returns whether the room is right: the right choice has more votes than every other.
 * @param {Choice[]} choices
 * @param {number[]} votes
 */
export function isRoomRight(choices, votes) {
  const right = choices.findIndex((choice) => choice.isRight);
  return votes.every((count, i) => i === right || count < votes[right]);
}
