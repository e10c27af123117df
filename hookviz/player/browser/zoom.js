// What of a long timeline is shown: which steps, and which part of them. The node tests run this file.

import { kindOf } from "./logic.js";

/** How steps are chosen and ordered: all of them, with modules or kinds below, or only some. */
export const GROUPS = ["all", "modules", "kinds", "hooks", "problems"];

const CHOSEN = {
  hooks: ({ glyph }) => glyph === "hook",
  problems: ({ glyph, norm }) => glyph === "exception" || norm === 0 || typeof norm === "string",
};

/** The steps that a group shows. */
export function stepsOf(frames, group) {
  const isChosen = CHOSEN[group] ?? (() => true);
  return frames.flatMap((frame, step) => (isChosen(frame) ? [step] : []));
}

/** The place of the last of these steps that is not after `step`; 0 before the first. */
export function placeAmong(steps, step) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** No closer than this. */
const LEAST = 20;
const within = (number, low, high) => Math.max(low, Math.min(high, number));

/** The part that is `by` times as long, with `at` where it was; as long as all there is at most. */
export function zoomed([from, to], at, by, count) {
  const size = within(Math.round((to - from) * by), Math.min(LEAST, count), count);
  const start = within(Math.round(at - ((at - from) * size) / (to - from)), 0, count - size);
  return [start, start + size];
}

/** The part, moved so far that `at` is in its middle, if it is not in it. */
export function holding([from, to], at, count) {
  if (from <= at && at < to) return [from, to];
  const start = within(Math.round(at - (to - from) / 2), 0, Math.max(0, count - (to - from)));
  return [start, start + to - from];
}

/** The columns of a timeline: what of the steps that share a column of pixels is to be seen. */
export function columnsOf(frames, steps, count) {
  const columns = Array.from({ length: count }, () => ({ low: Infinity, high: -Infinity, glyphs: new Set(), bad: false, zero: false }));
  steps.forEach((step, i) => {
    const { glyph, norm } = frames[step];
    const column = columns[Math.floor((i * count) / steps.length)];
    column.glyphs.add(kindOf(frames[step]));
    column.bad ||= glyph === "exception" || typeof norm === "string";
    if (norm === 0) column.zero = true;
    else if (typeof norm === "number") [column.low, column.high] = [Math.min(column.low, norm), Math.max(column.high, norm)];
  });
  return columns;
}
