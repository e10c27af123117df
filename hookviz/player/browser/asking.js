// Questions before a hook runs: which one is in the way, reading an answer and judging it. The node tests run this file.

import { isComposing, keyOf, plain } from "./logic.js";

// A frame's ask is what predict.py writes: a text, and either an answer in numbers or choices.

/** The first step after one, up to another, whose question is open; -1 where none is. */
export function questionBetween(frames, answered, from, to) {
  return frames.findIndex(({ ask }, step) => step > from && step <= to && ask && !(step in answered));
}

// How a number is written and judged: the rule stands in answers.py, and verdicts.json holds both files to it.

const SEPARATORS = /(?:[,;()[\]\s]|tensor)+/;
const NUMBER = /^([+-]?)(?:(nan)|(inf|infinity)|((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?))$/;
const ENOUGH = 3;
const SLACK = 1 + 1e-9;

/** The numbers in what was typed; undefined for what is no number. */
export function readNumbers(text) {
  return plain(text).split(SEPARATORS).filter(Boolean).map(readNumber);
}

function readNumber(written) {
  if (written === "none") return null;
  const [known, sign, nan, infinity, decimal] = NUMBER.exec(written) ?? [];
  if (known === undefined) return undefined;
  const size = nan ? NaN : infinity ? Infinity : Number(decimal);
  return sign === "-" ? -size : size;
}

/** Whether a key in the field is for the field: all with a name, and what is in numbers, in nan, none and infinity. */
export function isTyped(event) {
  if (isComposing(event)) return true;
  const key = keyOf(event);
  // Shift+Enter runs the cell, as everywhere.
  if (key.length > 1) return key !== "Enter" || !event.shiftKey;
  return /[-+.,;()\s\d∞aefinoty]/i.test(plain(key));
}

/** Whether a number is right: near enough, or rounded; 0 and -0 are the same. */
export function isNear(given, recorded) {
  if (given === null || recorded === null) return given === recorded;
  if (given === recorded || (Number.isNaN(given) && Number.isNaN(recorded))) return true;
  if (!Number.isFinite(given) || !Number.isFinite(recorded)) return false;
  return Math.abs(given - recorded) <= 1e-3 * Math.abs(recorded) * SLACK || isRounded(given, recorded);
}

/** Whether a number is the recorded one, rounded to three digits. */
function isRounded(given, recorded) {
  if (rounded(given) !== given) return false;
  const nearest = rounded(recorded);
  return Number.isFinite(nearest) && Math.abs(given - recorded) <= Math.abs(nearest - recorded) * SLACK;
}

const rounded = (number) => Number(number.toExponential(ENOUGH - 1));

const areNear = (given, recorded) => given.length === recorded.length && given.every((number, i) => isNear(number, recorded[i]));

/** Right or not, and why; or what keeps the answer from being judged. */
export function judge(ask, given) {
  if (ask.choices) return { right: given === ask.right, reason: ask.reasons[given] };
  const [numbers, answer] = [given, ask.answer].map(readNumbers);
  if (!numbers.length || numbers.includes(undefined)) return { unread: "ask_unread" };
  if (numbers.length !== answer.length) return { unread: "ask_count", count: answer.length };
  const known = ask.reasons.find(([wrong]) => areNear(numbers, readNumbers(wrong)));
  return { right: areNear(numbers, answer), reason: known?.[1] };
}

/** The answers so far with one more; what was answered once stays as it was. */
export function answeredWith(answered, step, right) {
  const all = { [step]: Number(right), ...answered };
  const values = Object.values(all);
  return { answered: all, asked: values.length, right: values.reduce((sum, one) => sum + one, 0) };
}
