// The columns of a long timeline, and where passes begin on a timeline. The node tests run this file.

/** @import { Norm } from "../common/payload" */

/** @typedef {{ glyph: string, norm: Norm, sign?: string | null }} StepSummary a step without its words */

/** The least space between the beginnings of passes, in pixels: nearer ones are left out unless they have a title. */
const MIN_PASS_WIDTH = 6;

/** @typedef {{ view: number, left: number, isTitled: boolean }} PassMark */

/**
 * Returns where passes begin on a timeline. If there is no room for all titles, every second, fifth, tenth … has one.
 * @param {{ view: number }[]} steps the steps of the timeline
 * @param {number} width in pixels
 * @param {number} titleWidth the width that each title needs
 * @returns {PassMark[]}
 */
export function passMarks(steps, width, titleWidth) {
  /** @type {Map<number, number>} */
  const starts = new Map();
  steps.forEach(({ view }, i) => starts.has(view) || starts.set(view, i));
  const stride = roundUp((starts.size * titleWidth) / width);
  const offset = stride > 2 ? 1 : 0; // 1, 3, 5 …, or 5, 10, 15 …
  const isTight = starts.size * MIN_PASS_WIDTH > width;
  const marks = [...starts].map(([view, i]) => {
    return { view, left: (i / steps.length) * width, isTitled: (view + offset) % stride === 0 };
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

/** @typedef {{ low: number, high: number, signs: Set<string>, bad: boolean, zero: boolean }} Column */

/**
 * Returns the columns of a timeline: a summary of the steps that share a column of pixels.
 * @param {StepSummary[]} steps
 * @param {number} count
 * @returns {Column[]}
 */
export function makeColumns(steps, count) {
  const columns = Array.from({ length: count }, newColumn);
  steps.forEach(({ glyph, norm, sign }, i) => {
    const column = columns[Math.floor((i * count) / steps.length)];
    if (sign) column.signs.add(sign);
    column.bad ||= glyph === "exception" || typeof norm === "string";
    if (norm === 0) column.zero = true;
    else if (typeof norm === "number") [column.low, column.high] = [Math.min(column.low, norm), Math.max(column.high, norm)];
  });
  return columns;
}

/** @returns {Column} */
const newColumn = () => ({ low: Infinity, high: -Infinity, signs: new Set(), bad: false, zero: false });
