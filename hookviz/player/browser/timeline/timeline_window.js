// The visible range of a long timeline: selecting steps, zooming and moving. The node tests run this file.

import { legendKind } from "../common/stepping.js";

/** @import { Norm } from "../common/payload" */

/** @typedef {{ glyph: string, norm: Norm, sign?: string | null }} StepSummary a step without its words */
/** @typedef {[from: number, to: number]} Range indices among the chosen steps, `to` not included */

/** The choices of the menu: all steps, all with rows of modules or kinds below, or only some steps. */
export const GROUPS = ["all", "modules", "kinds", "hooks", "problems"];

/** @type {{ [group: string]: (step: StepSummary) => boolean }} */
const GROUP_FILTERS = {
  hooks: ({ glyph }) => glyph === "hook",
  problems: ({ glyph, norm }) => glyph === "exception" || norm === 0 || typeof norm === "string",
};

/**
 * Returns the steps of a group.
 * @param {StepSummary[]} steps
 * @param {string} [group]
 */
export function stepsInGroup(steps, group = "all") {
  const isChosen = GROUP_FILTERS[group] ?? (() => true);
  return steps.flatMap((summary, step) => (isChosen(summary) ? [step] : []));
}

/**
 * Returns the index of the last of some steps that is not after `step`; 0 if all are.
 * @param {number[]} steps
 * @param {number} step
 */
export function indexAmong(steps, step) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** The fewest steps of a range. */
const MIN_RANGE_STEPS = 20;
/**
 * @param {number} number
 * @param {number} low
 * @param {number} high
 */
const clamp = (number, low, high) => Math.max(low, Math.min(high, number));

/**
 * Returns a range that is `by` times as long, with `at` at the same position; at most all `count` steps.
 * @param {Range} range
 * @param {number} at
 * @param {number} by
 * @param {number} count
 * @returns {Range}
 */
export function zoomRange([from, to], at, by, count) {
  const size = clamp(Math.round((to - from) * by), Math.min(MIN_RANGE_STEPS, count), count);
  const start = clamp(Math.round(at - ((at - from) * size) / (to - from)), 0, count - size);
  return [start, start + size];
}

/**
 * Returns the range, moved so that `at` is in its middle unless it is inside already.
 * @param {Range} range
 * @param {number} at
 * @param {number} count
 * @returns {Range}
 */
export function moveRangeTo([from, to], at, count) {
  if (from <= at && at < to) return [from, to];
  const start = clamp(Math.round(at - (to - from) / 2), 0, Math.max(0, count - (to - from)));
  return [start, start + to - from];
}

/** The least space between the beginnings of passes, in pixels: nearer ones are left out unless they have a title. */
const MIN_PASS_WIDTH = 6;

/** @typedef {{ picture: number, left: number, isTitled: boolean }} PassMark */

/**
 * Returns where passes begin on a timeline. If there is no room for all titles, every second, fifth, tenth … has one.
 * @param {{ picture: number }[]} steps
 * @param {number[]} chosen
 * @param {number} width in pixels
 * @param {number} titleWidth the width that each title needs
 * @returns {PassMark[]}
 */
export function passMarks(steps, chosen, width, titleWidth) {
  /** @type {Map<number, number>} */
  const starts = new Map();
  chosen.forEach((step, i) => starts.has(steps[step].picture) || starts.set(steps[step].picture, i));
  const stride = roundUp((starts.size * titleWidth) / width);
  const offset = stride > 2 ? 1 : 0; // 1, 3, 5 …, or 5, 10, 15 …
  const isTight = starts.size * MIN_PASS_WIDTH > width;
  const marks = [...starts].map(([picture, i]) => {
    return { picture, left: (i / chosen.length) * width, isTitled: (picture + offset) % stride === 0 };
  });
  const shown = isTight ? marks.filter(({ isTitled }) => isTitled) : marks;
  return shown.map((mark, i) => {
    const end = shown.slice(i + 1).find(({ isTitled }) => isTitled)?.left ?? width;
    return { ...mark, isTitled: mark.isTitled && end - mark.left >= titleWidth };
  });
}

/**
 * Returns the smallest of 1, 2, 5, 10, 20, 50 … that is not less than a number.
 * @param {number} number
 */
function roundUp(number) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(number)));
  return [1, 2, 5, 10].map((digit) => digit * power).find((round) => round >= number) ?? 1;
}

/** @typedef {{ low: number, high: number, kinds: Set<string>, bad: boolean, zero: boolean }} Column the kinds are those of the legend */

/**
 * Returns the columns of a timeline: a summary of the steps that share a column of pixels.
 * @param {StepSummary[]} steps
 * @param {number[]} chosen
 * @param {number} count
 * @returns {Column[]}
 */
export function makeColumns(steps, chosen, count) {
  const columns = Array.from({ length: count }, newColumn);
  chosen.forEach((step, i) => {
    const { glyph, norm } = steps[step];
    const column = columns[Math.floor((i * count) / chosen.length)];
    column.kinds.add(legendKind(steps[step]));
    column.bad ||= glyph === "exception" || typeof norm === "string";
    if (norm === 0) column.zero = true;
    else if (typeof norm === "number") [column.low, column.high] = [Math.min(column.low, norm), Math.max(column.high, norm)];
  });
  return columns;
}

/** @returns {Column} */
const newColumn = () => ({ low: Infinity, high: -Infinity, kinds: new Set(), bad: false, zero: false });
