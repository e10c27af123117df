// The columns of a long timeline, and the marks of passes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { makeColumns, passMarks } from "../../hookviz/player/browser/timeline/timeline_columns.js";

const steps = [
  { glyph: "seed", norm: 1 },
  { glyph: "node", norm: null },
  { glyph: "hook", norm: null, sign: "changed" },
  { glyph: "node", norm: 100 },
  { glyph: "node", norm: 0 },
  { glyph: "node", norm: "nan" },
];

test("a column has the range of its steps' norms, and tells whether they include a hook, a zero, NaN or Inf", () => {
  const [first, second, third] = makeColumns(steps, 3);
  assert.deepEqual([first.low, first.high, [...first.signs], first.bad], [1, 1, [], false]);
  assert.deepEqual([second.low, second.high, [...second.signs], second.bad], [100, 100, ["changed"], false]);
  assert.deepEqual([third.low <= third.high, third.zero, third.bad], [false, true, true]);
});

test("passes are marked where they begin, with as many titles as there is room for", () => {
  /** @param {number} count */
  const passes = (count) => Array.from({ length: 2 * count }, (_, step) => ({ picture: step >> 1 }));
  /**
   * @param {number} count
   * @param {number} width
   */
  const marksOf = (count, width) => passMarks(passes(count), width, 50);
  assert.deepEqual(marksOf(2, 100), [{ picture: 0, left: 0, isTitled: true }, { picture: 1, left: 50, isTitled: true }]);
  // The last title would not fit.
  assert.deepEqual(marksOf(4, 100).map(({ isTitled }) => isTitled), [true, false, true, false]);
  assert.deepEqual(marksOf(2000, 1000).map(({ picture }) => picture + 1), [...Array(20).keys()].map((i) => 100 * (i + 1)));
  assert.deepEqual(passMarks([passes(3)[1], passes(3)[4]], 100, 50).map(({ picture, left }) => [picture, left]), [[0, 0], [2, 50]]);
});
