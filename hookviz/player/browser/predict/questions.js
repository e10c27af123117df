// Questions before a step: finding the next open one, parsing an answer and judging it. The node tests run this file.

import { isComposing, keyOf, normalizeText } from "../common/key_bindings.js";

/** @import { Key } from "../common/key_bindings.js" */
/** @import { PlayerState, Question } from "../common/payload" */
/** @import { Context, KeyedQuestion, Step } from "../common/types" */

/** @typedef {PlayerState["answered"]} Answered */
/** @typedef {(number | null | undefined)[]} Numbers null for None, undefined for text that is not a number */

/** @typedef {{ questions: KeyedQuestion[] }} Asking a step with the questions before it */

/**
 * Returns the first open question before a step; undefined if all are answered.
 * @param {Asking} step
 * @param {Answered} answered
 */
export const openQuestion = ({ questions }, answered) => questions.find(({ key }) => !(key in answered));

/**
 * Returns the first step, up to `to`, before which a question is open; -1 if there is none.
 * @param {Asking[]} steps
 * @param {Answered} answered
 * @param {number} to
 */
export const firstOpenStep = (steps, answered, to) => steps.findIndex((step, i) => i <= to && openQuestion(step, answered));

/** The answer to a question whose step was seen before predicting began. It does not count. */
const PASSED = -1;

/**
 * Returns the answers, in which the open questions up to a step, which has been seen, are closed. If nothing was
 * answered before, they do not count; else they count as not right.
 * @param {Asking[]} steps
 * @param {Answered} answered
 * @param {number} seen
 */
export function closeSeen(steps, answered, seen) {
  const result = hasAnswers(answered) ? 0 : PASSED;
  const open = steps.slice(0, seen + 1).flatMap(({ questions }) => questions.filter(({ key }) => !(key in answered)));
  return open.length ? { ...answered, ...Object.fromEntries(open.map(({ key }) => [key, result])) } : answered;
}

/** @param {Answered} answered */
export const hasAnswers = (answered) => Object.values(answered).some((result) => result !== PASSED);

/**
 * Returns the answers without the questions that were passed and come again, since the player goes back to a step.
 * @param {Asking[]} steps
 * @param {Answered} answered
 * @param {number} step
 * @param {number} run the run that is shown: only its own questions come again
 */
export function reopenPassed(steps, answered, step, run) {
  if (!Object.values(answered).includes(PASSED)) return answered;
  const later = steps.slice(step + 1).flatMap(({ questions }) => questions);
  const again = later.filter((question) => question.run === run && answered[question.key] === PASSED).map(({ key }) => String(key));
  return again.length ? Object.fromEntries(Object.entries(answered).filter(([key]) => !again.includes(key))) : answered;
}

/**
 * Returns the steps of the run; while the user predicts, without the norms of later steps and what later hooks do.
 * @param {Pick<Context, "model" | "run" | "driver">} context
 * @returns {Step[]}
 */
export function hideLater({ model, run, driver }) {
  if (!model.get("predict")) return run.steps;
  const { step } = driver.position();
  return run.steps.map((one, i) => (i > step ? { ...one, norm: null, sign: one.sign && "open" } : one));
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

/** @typedef {{ right: boolean, reason?: string }} Verdict */
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
 * @param {number} key
 * @param {boolean} right
 */
export const addAnswer = (answered, key, right) => withScore({ [key]: Number(right), ...answered });

/**
 * Returns the answers with their score.
 * @param {Answered} answered
 */
export function withScore(answered) {
  const counted = Object.values(answered).filter((result) => result !== PASSED);
  return { answered, asked: counted.length, right: counted.filter((result) => result === 1).length };
}
