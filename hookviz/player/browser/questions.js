// Questions before a step: finding the next open one, parsing an answer and judging it. The node tests run this file.

import { isComposing, keyOf, normalizeText } from "./key_bindings.js";

/** @import { Key } from "./key_bindings.js" */
/** @import { Message, PlayerState, Question } from "./payload" */

/** @typedef {PlayerState["answered"]} Answered */
/** @typedef {(number | null | undefined)[]} Numbers null for None, undefined for text that is not a number */

/**
 * Returns the first step after `from`, up to `to`, whose question is open; -1 if there is none.
 * @param {{ question: Question | null }[]} steps
 * @param {Answered} answered
 * @param {number} from
 * @param {number} to
 */
export function questionBetween(steps, answered, from, to) {
  return steps.findIndex(({ question }, step) => step > from && step <= to && question && !(step in answered));
}

// Parsing and judging numbers: the same rules as in answers.py. Both files are tested with verdicts.json.

const SEPARATORS = /(?:[,;()[\]\s]|tensor)+/;
const NUMBER = /^([+-]?)(?:(nan)|(inf|infinity)|((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?))$/;
/** The significant digits that an answer needs. */
const DIGITS = 3;
const SLACK = 1 + 1e-9;

/**
 * Parses the numbers in a typed text.
 * @param {string} text
 * @returns {Numbers}
 */
export function readNumbers(text) {
  return normalizeText(text).split(SEPARATORS).filter(Boolean).map(readNumber);
}

/** @param {string} text */
function readNumber(text) {
  if (text === "none") return null;
  const [match, sign, nan, infinity, decimal] = NUMBER.exec(text) ?? [];
  if (match === undefined) return undefined;
  const size = nan ? NaN : infinity ? Infinity : Number(decimal);
  return sign === "-" ? -size : size;
}

/**
 * Returns whether the number field handles a key: named keys, and the characters of numbers, nan, none and infinity.
 * @param {Key} event
 */
export function isTyped(event) {
  if (isComposing(event)) return true;
  const key = keyOf(event);
  // Shift+Enter runs the cell.
  if (key.length > 1) return key !== "Enter" || !event.shiftKey;
  return /[-+.,;()\s\d∞aefinoty]/i.test(normalizeText(key));
}

/**
 * Returns whether a number is right: within 0.1 % or rounded to three digits; 0 equals -0.
 * @param {number | null | undefined} given
 * @param {number | null | undefined} recorded
 */
export function isNear(given, recorded) {
  if (given === null || recorded === null || given === undefined || recorded === undefined) return given === recorded;
  if (given === recorded || (Number.isNaN(given) && Number.isNaN(recorded))) return true;
  if (!Number.isFinite(given) || !Number.isFinite(recorded)) return false;
  return Math.abs(given - recorded) <= 1e-3 * Math.abs(recorded) * SLACK || isRounded(given, recorded);
}

/**
 * Returns whether a number is the recorded one, rounded to three digits.
 * @param {number} given
 * @param {number} recorded
 */
function isRounded(given, recorded) {
  if (roundToDigits(given) !== given) return false;
  const nearest = roundToDigits(recorded);
  return Number.isFinite(nearest) && Math.abs(given - recorded) <= Math.abs(nearest - recorded) * SLACK;
}

/** @param {number} number */
const roundToDigits = (number) => Number(number.toExponential(DIGITS - 1));

/**
 * @param {Numbers} given
 * @param {Numbers} recorded
 */
const areNear = (given, recorded) => given.length === recorded.length && given.every((number, i) => isNear(number, recorded[i]));

/** @typedef {{ right: boolean, reason?: Message }} Verdict */
/** @typedef {{ unread: "ask_unread" | "ask_count", count: number }} Unread why an answer cannot be judged */

/**
 * Judges the index of a choice.
 * @param {Question} question
 * @param {number} given
 * @returns {Verdict}
 */
export const judgeChoice = (question, given) => ({ right: given === question.right, reason: question.reasons?.[given] });

/**
 * Judges the numbers in a typed text.
 * @param {Question} question
 * @param {string} given
 * @returns {Verdict | Unread}
 */
export function judgeNumbers(question, given) {
  const [numbers, answer] = [given, question.answer ?? ""].map(readNumbers);
  if (!numbers.length || numbers.includes(undefined)) return { unread: "ask_unread", count: answer.length };
  if (numbers.length !== answer.length) return { unread: "ask_count", count: answer.length };
  const mistake = question.mistakes?.find(([wrong]) => areNear(numbers, readNumbers(wrong)));
  return { right: areNear(numbers, answer), reason: mistake?.[1] };
}

/**
 * Returns the answers with one more, and the score. An earlier answer to the same question stays.
 * @param {Answered} answered
 * @param {number} step
 * @param {boolean} right
 */
export function addAnswer(answered, step, right) {
  const all = { [step]: Number(right), ...answered };
  const values = Object.values(all);
  return { answered: all, asked: values.length, right: values.reduce((sum, one) => sum + one, 0) };
}
