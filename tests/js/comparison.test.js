// Several runs of one program: baselines, switches, differences, and what a flipped switch changes in the end.

import assert from "node:assert/strict";
import { test } from "node:test";

import { baselineIndex, flipSwitch, splitTexts } from "../../hookviz/player/browser/compare/comparison.js";
import { describeFlip, finalGradients } from "../../hookviz/player/browser/compare/flip_result.js";
import { sayWith } from "../../hookviz/player/browser/common/labels.js";

const ALL = { "": 0, 0: 1, 1: 2, "0,1": 3 };
const content = { runs: [{ baseline: 2 }, { baseline: 2 }, { baseline: null }] };

test("a run is compared with its baseline", () => {
  assert.deepEqual([0, 1, 2].map((shown) => baselineIndex(content, shown, false)), [2, 2, null]);
  assert.equal(baselineIndex({ runs: [] }, 0, false), null);
});

test("after a flip, runs are compared with the run with all hooks on, which has no baseline", () => {
  assert.deepEqual([0, 1, 2].map((shown) => baselineIndex(content, shown, true)), [null, 0, 0]);
});

test("a switch goes off and on again", () => {
  assert.deepEqual(flipSwitch(ALL, 0, 1), { shown: 2, resetsOthers: false });
  assert.deepEqual(flipSwitch(ALL, 2, 0), { shown: 3, resetsOthers: false });
  assert.deepEqual(flipSwitch(ALL, 3, 1), { shown: 1, resetsOthers: false });
  assert.deepEqual(flipSwitch(ALL, 1, 0), { shown: 0, resetsOthers: false });
});

test("if a combination was not recorded, all other switches go back on", () => {
  const resetsOthers = { "": 0, 0: 1, 1: 2, 10: 3 };
  assert.deepEqual(flipSwitch(resetsOthers, 1, 10), { shown: 3, resetsOthers: true });
  assert.deepEqual(flipSwitch(resetsOthers, 3, 10), { shown: 0, resetsOthers: false });
});

test("the common beginning of two texts is shown once", () => {
  assert.deepEqual(splitTexts("gradient 10", "gradient 8"), ["gradient", "10", "8"]);
  assert.deepEqual(splitTexts("8 → 10", "9 → 9"), ["", "8 → 10", "9 → 9"]);
});

const say = sayWith({
  flip_result: "{label}: {changes}.",
  flip_change: "{on}.grad is {now} instead of {was}",
  flip_differs: "{on}.grad differs",
  flip_more: "and {count} more",
  flip_none: "{label}: every .grad stays the same.",
});

const run = (label, gradients) => ({
  label,
  steps: gradients.map(([on, after]) => ({ kind: "accumulate", words: { writes_grad_of: on, after } })),
});

test("the sentence lists the gradients that differ in the end", () => {
  const [before, after] = [run("all on", [["a", "30"], ["b", "20"]]), run("Without f", [["a", "24"], ["b", "20"]])];
  assert.equal(describeFlip(after, before, say), "Without f: a.grad is 24 instead of 30.");
  assert.equal(describeFlip(before, before, say), "all on: every .grad stays the same.");
  assert.equal(describeFlip(after, null, say), "");
});

test("the last value of a gradient counts, and long values and lists are cut with a word", () => {
  assert.deepEqual([...finalGradients(run("", [["a", "1"], ["a", "3"]]))], [["a", "3"]]);
  const many = (value) => run("x", ["a", "b", "c", "d", "e", "f"].map((name) => [name, value]));
  assert.equal(
    describeFlip(many("[1,\n 2]"), many("[1,\n 3]"), say),
    "x: a.grad differs, b.grad differs, c.grad differs, d.grad differs, and 2 more.",
  );
});
