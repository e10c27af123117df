// The columns and the visible range of a long timeline.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  indexAmong, makeColumns, moveRangeTo, passMarks, stepsInGroup, zoomRange,
} from "../../hookviz/player/browser/timeline/timeline_window.js";

const steps = [
  { glyph: "seed", norm: 1 },
  { glyph: "node", norm: null },
  { glyph: "hook", norm: null },
  { glyph: "node", norm: 100 },
  { glyph: "node", norm: 0 },
  { glyph: "node", norm: "nan" },
];

test("a column has the range of its steps' norms, and tells whether they include a hook, a zero, NaN or Inf", () => {
  const [first, second, third] = makeColumns(steps, stepsInGroup(steps, "all"), 3);
  assert.deepEqual([first.low, first.high, [...first.kinds], first.bad], [1, 1, ["node"], false]);
  assert.deepEqual([second.low, second.high, [...second.kinds], second.bad], [100, 100, ["hook", "node"], false]);
  assert.deepEqual([third.low <= third.high, third.zero, third.bad], [false, true, true]);
});

test("a group shows all steps, or only those with hooks or problems", () => {
  assert.deepEqual(["all", "modules", "kinds"].map((group) => stepsInGroup(steps, group).length), [6, 6, 6]);
  assert.deepEqual(["hooks", "problems"].map((group) => stepsInGroup(steps, group)), [[2], [4, 5]]);
  assert.deepEqual(stepsInGroup([{ glyph: "exception", norm: null }, { glyph: "node", norm: 1 }], "problems"), [0]);
});

test("the index of a step that is not shown is that of the last one before it", () => {
  assert.deepEqual([0, 2, 3, 8, 9, 50].map((step) => indexAmong([2, 4, 8], step)), [0, 0, 0, 2, 2, 2]);
  assert.equal(indexAmong([], 3), 0);
});

test("zooming halves the range and keeps the position of the step, within all steps", () => {
  assert.deepEqual(zoomRange([0, 1000], 500, 0.5, 1000), [250, 750]);
  assert.deepEqual(zoomRange([250, 750], 500, 2, 1000), [0, 1000]);
  assert.deepEqual(zoomRange([0, 1000], 0, 0.5, 1000), [0, 500]);
  assert.deepEqual(zoomRange([500, 1000], 999, 2, 1000), [0, 1000]);
  assert.deepEqual(zoomRange([0, 1000], 400, 2, 1000), [0, 1000]);
  assert.deepEqual(zoomRange([100, 120], 110, 0.5, 1000), [100, 120]);
  assert.deepEqual(zoomRange([0, 3], 1, 0.5, 3), [0, 3]);
});

test("the range follows a step that leaves it", () => {
  assert.deepEqual(moveRangeTo([100, 200], 150, 1000), [100, 200]);
  assert.deepEqual(moveRangeTo([100, 200], 200, 1000), [150, 250]);
  assert.deepEqual(moveRangeTo([100, 200], 3, 1000), [0, 100]);
  assert.deepEqual(moveRangeTo([100, 200], 999, 1000), [900, 1000]);
});

test("passes are marked where they begin, with as many titles as there is room for", () => {
  /** @param {number} count */
  const passes = (count) => Array.from({ length: 2 * count }, (_, step) => ({ picture: step >> 1 }));
  /**
   * @param {number} count
   * @param {number} width
   */
  const marksOf = (count, width) => passMarks(passes(count), [...Array(2 * count).keys()], width, 50);
  assert.deepEqual(marksOf(2, 100), [{ picture: 0, left: 0, isTitled: true }, { picture: 1, left: 50, isTitled: true }]);
  // The last title would not fit.
  assert.deepEqual(marksOf(4, 100).map(({ isTitled }) => isTitled), [true, false, true, false]);
  assert.deepEqual(marksOf(2000, 1000).map(({ picture }) => picture + 1), [...Array(20).keys()].map((i) => 100 * (i + 1)));
  assert.deepEqual(passMarks(passes(3), [1, 4], 100, 50).map(({ picture, left }) => [picture, left]), [[0, 0], [2, 50]]);
});
