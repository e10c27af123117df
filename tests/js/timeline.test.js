// Norms on a scale, the columns of a long timeline, and hover texts.

import assert from "node:assert/strict";
import { test } from "node:test";

import { normScale } from "../../hookviz/player/browser/common/norm_scale.js";
import { makeColumns, passMarks } from "../../hookviz/player/browser/timeline/timeline_columns.js";
import { sayPosition } from "../../hookviz/player/browser/common/pass_titles.js";
import { hoverText } from "../../hookviz/player/browser/timeline/timeline_slider.js";
import { sayWith } from "../../hookviz/player/browser/common/labels.js";

const steps = [
  { glyph: "seed", norm: 1 },
  { glyph: "node", norm: null },
  { glyph: "hook", norm: null, sign: "changed" },
  { glyph: "node", norm: 100 },
  { glyph: "node", norm: 0 },
  { glyph: "node", norm: "nan" },
];

test("the scale covers the smallest and the largest norm above 0, and at least four powers of ten", () => {
  const { low, high, from, to } = normScale(steps);
  assert.deepEqual([low, high, from, to], [1, 100, -1, 3]);
  assert.deepEqual(normScale([{ norm: 1e-9 }, { norm: 10 }, { norm: "inf" }]), { low: 1e-9, high: 10, from: -9, to: 1 });
  assert.equal(normScale([{ norm: null }, { norm: 0 }, { norm: "nan" }]), null);
});

test("a column has the range of its steps' norms, and tells whether they include a hook, a zero, NaN or Inf", () => {
  const [first, second, third] = makeColumns(steps, 3);
  assert.deepEqual([first.low, first.high, [...first.signs], first.bad], [1, 1, [], false]);
  assert.deepEqual([second.low, second.high, [...second.signs], second.bad], [100, 100, ["changed"], false]);
  assert.deepEqual([third.low <= third.high, third.zero, third.bad], [false, true, true]);
});

test("passes are marked where they begin, with as many titles as there is room for", () => {
  /** @param {number} count */
  const passes = (count) => Array.from({ length: 2 * count }, (_, step) => ({ view: step >> 1 }));
  /**
   * @param {number} count
   * @param {number} width
   */
  const marksOf = (count, width) => passMarks(passes(count), width, 50);
  assert.deepEqual(marksOf(2, 100), [{ view: 0, left: 0, isTitled: true }, { view: 1, left: 50, isTitled: true }]);
  // The last title would not fit.
  assert.deepEqual(marksOf(4, 100).map(({ isTitled }) => isTitled), [true, false, true, false]);
  assert.deepEqual(marksOf(2000, 1000).map(({ view }) => view + 1), [...Array(20).keys()].map((i) => 100 * (i + 1)));
  assert.deepEqual(passMarks([passes(3)[1], passes(3)[4]], 100, 50).map(({ view, left }) => [view, left]), [[0, 0], [2, 50]]);
});

const say = sayWith({
  pass: "Pass {number}", pass_of: "pass {number} of {count}", step_of: "Step {step} of {steps}",
});

test("a position says which of all passes it is in", () => {
  const at = (/** @type {number[]} */ passNumbers) => {
    const run = { steps: /** @type {any} */ (passNumbers.map((_, view) => ({ view }))), passNumbers };
    return sayPosition({ run, say }, passNumbers.length - 1);
  };
  assert.equal(at([1]), "Step 1 of 1");
  assert.equal(at([1, 2]), "Step 2 of 2 · pass 2 of 2");
  assert.equal(at([26, 27]), "Step 2 of 2 · Pass 27");
});

const marks = [{ words: { title: "the seed at e" }, sign: null }, { words: { title: "c_hook on c" }, sign: "changed" }];
const context = (/** @type {boolean} */ predict) => ({
  run: { steps: marks },
  say,
  model: { get: () => predict },
  driver: { position: () => ({ step: 0 }) },
});

test("while one predicts, a later mark says no more than its number", () => {
  assert.equal(hoverText(context(true), 1), "Step 2 of 2 (← →)");
});
