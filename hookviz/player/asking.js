// Questions before a hook runs: which one is in the way, reading an answer and judging it. The node tests run this file.

// A frame's ask is what predict.py writes: a text, and either an answer in numbers or choices.

/** The first step after one, up to another, whose question is open; -1 where none is. */
export function questionBetween(frames, answered, from, to) {
  return frames.findIndex(({ ask }, step) => step > from && step <= to && ask && !(step in answered));
}

const NAMED = new Map([["none", null], ["nan", NaN], ...["inf", "infinity", "∞"].map((name) => [name, Infinity])]);

/** The numbers in what was typed, as Python or a person writes them; undefined for what is no number. */
export function readNumbers(text) {
  const bare = text.toLowerCase().replace(/tensor|[()[\]]/g, " ").replace(/−/g, "-");
  return bare.split(/[,;\s]+/).filter(Boolean).map((part) => {
    const [sign, name] = part.startsWith("-") ? [-1, part.slice(1)] : [1, part.replace(/^\+/, "")];
    if (NAMED.has(name)) return NAMED.get(name) === null ? null : sign * NAMED.get(name);
    return /^[\d.]/.test(name) && Number(name) >= 0 ? sign * Number(name) : undefined;
  });
}

/** Whether a key in the field is for the field: all with a name, and what is in numbers, in nan, none and infinity. */
export function isTyped({ key, shiftKey }) {
  // Shift+Enter runs the cell, as everywhere.
  return key.length > 1 ? key !== "Enter" || !shiftKey : /[-−+.,;()\s\d∞aefinoty]/i.test(key);
}

/** Three digits are enough; 0 and -0 are the same. */
export function isNear(given, right) {
  if (given === null || right === null) return given === right;
  if (given === right || (Number.isNaN(given) && Number.isNaN(right))) return true;
  if (!Number.isFinite(given) || !Number.isFinite(right)) return false;
  return Math.abs(given - right) <= 1e-3 * Math.abs(right) || given === Number(right.toPrecision(3));
}

const areNear = (given, right) => given.length === right.length && given.every((number, i) => isNear(number, right[i]));

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
