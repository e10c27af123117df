// What a flipped switch changes in the end.

import assert from "node:assert/strict";
import test from "node:test";

import { describeFlip, finalGradients } from "../../hookviz/player/browser/flip_result.js";
import { Language } from "../../hookviz/player/browser/language.js";

const language = new Language({
  "kind.accumulate": "{on}.grad is written",
  "player.flip_result": "{label}: {changes}.",
  "player.flip_change": "{on}.grad is {now} instead of {was}",
  "player.flip_differs": "{on}.grad differs",
  "player.flip_more": "and {count} more",
  "player.flip_none": "{label}: every .grad stays the same.",
});

const run = (label, gradients) => ({
  label,
  steps: gradients.map(([on, after]) => ({ kind: "accumulate", words: { title: ["kind.accumulate", { on }], after } })),
});

test("the sentence lists the gradients that differ in the end", () => {
  const [before, after] = [run("all on", [["a", "30"], ["b", "20"]]), run("Without f", [["a", "24"], ["b", "20"]])];
  assert.equal(describeFlip(after, before, language), "Without f: a.grad is 24 instead of 30.");
  assert.equal(describeFlip(before, before, language), "all on: every .grad stays the same.");
  assert.equal(describeFlip(after, null, language), "");
});

test("the last value of a gradient counts, and long values and lists are cut with a word", () => {
  assert.deepEqual([...finalGradients(run("", [["a", "1"], ["a", "3"]]), language)], [["a", "3"]]);
  const many = (value) => run("x", ["a", "b", "c", "d", "e", "f"].map((name) => [name, value]));
  assert.equal(
    describeFlip(many("[1,\n 2]"), many("[1,\n 3]"), language),
    "x: a.grad differs, b.grad differs, c.grad differs, d.grad differs, and 2 more.",
  );
});
