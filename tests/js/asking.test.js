// Predicting: which question is in the way, how answers are read and judged, and the score.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as asking from "../../hookviz/player/browser/asking.js";

const number = { text: "What comes out?", answer: "10", reasons: [["8", "8 is the gradient before c_hook."]] };
const choice = { text: "Which?", choices: ["c", "d", "e"], right: 1, reasons: ["later", "", "earlier"] };
const frames = [{}, { ask: number }, {}, {}, { ask: choice }, { ask: number }];

test("the first open question up to a step is in the way", () => {
  const between = (from, to, answered = {}) => asking.questionBetween(frames, answered, from, to);
  assert.equal(between(0, 1), 1);
  assert.equal(between(0, 5), 1);
  assert.equal(between(1, 5), 4, "the step where one stands has been seen");
  assert.equal(between(2, 3), -1);
  assert.equal(between(0, 5, { 1: 0 }), 4, "an answered one is not, right or wrong");
  assert.equal(between(0, 5, { 1: 1, 4: 1, 5: 0 }), -1);
  assert.equal(between(5, 0), -1, "nor is any on the way back");
});

test("numbers are read as Python and people write them", () => {
  assert.deepEqual(asking.readNumbers(" 10 "), [10]);
  assert.deepEqual(asking.readNumbers("tensor([1., -2.5e-3])"), [1, -0.0025]);
  assert.deepEqual(asking.readNumbers("1, 2;3 4"), [1, 2, 3, 4]);
  assert.deepEqual(asking.readNumbers("−.5, +3"), [-0.5, 3]);
  assert.deepEqual(asking.readNumbers("NaN, inf, -Infinity, -∞, None"), [NaN, Infinity, -Infinity, -Infinity, null]);
  assert.deepEqual(asking.readNumbers("ten, 1"), [undefined, 1]);
  assert.deepEqual(asking.readNumbers("-, 1.2.3, 1x"), [undefined, undefined, undefined]);
  assert.deepEqual(asking.readNumbers("  "), []);
});

test("answers are judged by the table that holds for Python too", () => {
  const unread = { ask_unread: "unread", ask_count: "count" };
  for (const [recorded, wanted, answers] of JSON.parse(readFileSync(new URL("verdicts.json", import.meta.url)))) {
    for (const given of answers) {
      const found = asking.judge({ answer: recorded, reasons: [] }, given);
      assert.equal(unread[found.unread] ?? (found.right ? "right" : "wrong"), wanted, `${JSON.stringify(given)} for ${recorded}`);
    }
  }
});

test("what can be in a number is typed into the field, and any other letter is a key of the player", () => {
  const typed = (keys) => keys.filter((key) => asking.isTyped({ key }));
  const numbers = [..."0123456789+-−.,;eE() ∞", ..."nan", ..."None", ..."infinity"];
  assert.deepEqual(typed(numbers), numbers);
  const named = ["ArrowLeft", "Home", "End", "Backspace", "Delete", "Enter"];
  assert.deepEqual(typed(named), named, "they move in the text and change it");
  assert.deepEqual(typed([..."pP[]sS?lLbB"]), []);
  assert.ok(!asking.isTyped({ key: "Enter", shiftKey: true }), "it runs the cell");
  assert.deepEqual(typed([..."\uff11\uff10\uff0d\uff0e\u3002\uff4e\u30fc"]), [..."\uff11\uff10\uff0d\uff0e\u3002\uff4e\u30fc"], "full-width characters");
});

test("what an input method has for itself is typed into the field; a letter that is not Latin is the key at its place", () => {
  const process = { key: "Process", code: "KeyP", keyCode: 229 };
  assert.ok(asking.isTyped(process) && asking.isTyped({ key: "p", isComposing: true }));
  assert.ok(asking.isTyped({ key: "Enter", shiftKey: true, isComposing: true }));
  assert.ok(!asking.isTyped({ key: "\u0437", code: "KeyP" }) && asking.isTyped({ key: "\u0443", code: "KeyE" }));
});

test("three digits are enough, and two are not", () => {
  assert.ok(asking.isNear(0.333, 1 / 3));
  assert.ok(asking.isNear(0.667, 2 / 3));
  assert.ok(asking.isNear(1.23e-9, 1.2345e-9));
  assert.ok(!asking.isNear(0.33, 1 / 3));
  assert.ok(!asking.isNear(8, 8.02));
  assert.ok(!asking.isNear(-10, 10));
});

test("0 is -0, NaN is NaN, and None is nothing else", () => {
  assert.ok(asking.isNear(0, -0) && asking.isNear(-0, 0));
  assert.ok(!asking.isNear(1e-12, 0) && !asking.isNear(0, 1e-12));
  assert.ok(asking.isNear(NaN, NaN) && !asking.isNear(NaN, 0) && !asking.isNear(0, NaN));
  assert.ok(asking.isNear(Infinity, Infinity) && !asking.isNear(-Infinity, Infinity) && !asking.isNear(1e300, Infinity));
  assert.ok(asking.isNear(null, null) && !asking.isNear(null, 0) && !asking.isNear(0, null));
});

test("a number is right, or wrong with the reason that the trace gives", () => {
  assert.equal(asking.judge(number, "10.0").right, true);
  assert.deepEqual(asking.judge(number, "8"), { right: false, reason: "8 is the gradient before c_hook." });
  assert.deepEqual(asking.judge(number, "7"), { right: false, reason: undefined });
});

test("what is no answer is not judged", () => {
  for (const given of ["", " ", "ten"]) assert.deepEqual(asking.judge(number, given), { unread: "ask_unread" });
  assert.deepEqual(asking.judge(number, "1, 2"), { unread: "ask_count", count: 1 });
  assert.equal(asking.judge({ ...number, answer: "1, None" }, "1").unread, "ask_count");
});

test("a choice is right in its place", () => {
  assert.deepEqual([0, 1, 2].map((given) => asking.judge(choice, given)), [
    { right: false, reason: "later" }, { right: true, reason: "" }, { right: false, reason: "earlier" },
  ]);
});

test("the score counts what was right at once, and each question once", () => {
  const one = asking.answeredWith({}, 1, true);
  assert.deepEqual(one, { answered: { 1: 1 }, asked: 1, right: 1 });
  const two = asking.answeredWith(one.answered, 4, false);
  assert.deepEqual(two, { answered: { 1: 1, 4: 0 }, asked: 2, right: 1 });
  assert.deepEqual(asking.answeredWith(two.answered, 4, true), two);
});
