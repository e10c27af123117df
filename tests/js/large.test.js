// Large traces: what a box shows, and what a column of the timeline does.

import assert from "node:assert/strict";
import { test } from "node:test";

import { stateIn } from "../../hookviz/player/logic.js";
import { columnsOf, heightOf, rangeOf } from "../../hookviz/player/long.js";

test("a box is to come, now while a step is inside, begun between, and done in the end", () => {
  const spans = [[3, 5], [9, 9]];
  assert.deepEqual([0, 3, 5, 7, 9, 10].map((step) => stateIn(spans, step)), ["todo", "now", "now", "begun", "now", "done"]);
});

test("a box in which nothing happens never has its turn", () => {
  assert.equal(stateIn([], 7), "todo");
});

const frames = [
  { glyph: "seed", norm: 1 },
  { glyph: "node", norm: null },
  { glyph: "hook", norm: null },
  { glyph: "node", norm: 100 },
  { glyph: "node", norm: 0 },
  { glyph: "node", norm: "nan" },
];

test("a column has the range of its steps' norms, and says whether a hook, a zero or no number is among them", () => {
  const [first, second, third] = columnsOf(frames, 3);
  assert.deepEqual([first.low, first.high, first.hook, first.bad], [1, 1, false, false]);
  assert.deepEqual([second.low, second.high, second.hook, second.bad], [100, 100, true, false]);
  assert.deepEqual([third.low <= third.high, third.zero, third.bad], [false, true, true]);
});

test("the range of all leaves out zero and what is no number", () => {
  assert.deepEqual(rangeOf(columnsOf(frames, 2)), [1, 100]);
  assert.equal(rangeOf(columnsOf([{ glyph: "module", norm: null }], 1)), null);
});

test("heights are on a scale of powers of ten; where all are alike they are full", () => {
  assert.deepEqual([1, 10, 100].map((norm) => heightOf(norm, [1, 100])), [0, 0.5, 1]);
  assert.equal(heightOf(7, [7, 7]), 1);
});
