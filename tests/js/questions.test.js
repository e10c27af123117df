// Predicting: the next open question, parsing and judging answers, and votes of a room.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as questions from "../../hookviz/player/browser/predict/questions.js";
import { choicesOf, isRoomRight, readVotes } from "../../hookviz/player/browser/predict/room_votes.js";

const number = { text: "What comes out?", answer: "10", mistakes: [["8", "8 is the gradient before c_hook."]] };
/** Six steps with questions before the second, the fifth (two of them) and the last. */
const steps = [[], [10], [], [], [20, 21], [30]].map((keys) => {
  return { questions: keys.map((key) => ({ ...number, key, run: key === 21 ? 3 : 0 })) };
});

test("the first open question up to a step is found", () => {
  const first = (to, answered = {}) => questions.firstOpenStep(steps, answered, to);
  assert.equal(first(0), -1);
  assert.equal(first(1), 1);
  assert.equal(first(5), 1);
  assert.equal(first(3, { 10: 0 }), -1, "an answered one is closed, right or wrong");
  assert.equal(first(5, { 10: 0 }), 4);
  assert.equal(first(5, { 10: 1, 20: 1 }), 4, "both questions before a step must be answered");
  assert.equal(first(5, { 10: 1, 20: 1, 21: 0, 30: -1 }), -1);
});

test("what was seen before predicting began does not count, and what was seen in between is not right", () => {
  assert.deepEqual(questions.closeSeen(steps, {}, 4), { 10: -1, 20: -1, 21: -1 });
  assert.deepEqual(questions.closeSeen(steps, { 10: 1 }, 4), { 10: 1, 20: 0, 21: 0 });
  const answered = { 10: 1 };
  assert.equal(questions.closeSeen(steps, answered, 3), answered, "nothing new was seen");
  assert.deepEqual(questions.withScore({ 10: 1, 20: 0, 30: -1 }), { answered: { 10: 1, 20: 0, 30: -1 }, asked: 2, right: 1 });
});

test("a passed question comes again when the player goes back before it, in the run that it is about", () => {
  const passed = { 10: -1, 20: -1, 21: -1, 30: 1 };
  assert.equal(questions.reopenPassed(steps, passed, 5, 0), passed);
  assert.deepEqual(questions.reopenPassed(steps, passed, 3, 0), { 10: -1, 21: -1, 30: 1 });
  assert.deepEqual(questions.reopenPassed(steps, passed, 0, 3), { 10: -1, 20: -1, 30: 1 });
});

test("while predicting, norms of later steps are hidden", () => {
  const run = { steps: [1, 2, 3].map((norm) => ({ norm })) };
  const driver = { position: () => ({ step: 1 }) };
  const norms = (predict) => questions.hideLater({ model: { get: () => predict }, run, driver }).map(({ norm }) => norm);
  assert.deepEqual(norms(true), [1, 2, null]);
  assert.deepEqual(norms(false), [1, 2, 3]);
});

test("answers are judged as in the table that Python is tested with, too", () => {
  const unread = { ask_unread: "unread", ask_count: "count" };
  for (const [recorded, wanted, answers] of JSON.parse(readFileSync(new URL("verdicts.json", import.meta.url)))) {
    for (const given of answers) {
      const found = questions.judgeNumbers({ answer: recorded }, given);
      assert.equal(unread[found.unread] ?? (found.right ? "right" : "wrong"), wanted, `${JSON.stringify(given)} for ${recorded}`);
    }
  }
});

test("characters of numbers are typed into the field, and other letters are keys of the player", () => {
  const typed = (keys) => keys.filter((key) => questions.isTyped({ key }));
  const numbers = [..."0123456789+-−.,;eE() ∞", ..."nan", ..."None", ..."infinity"];
  assert.deepEqual(typed(numbers), numbers);
  const named = ["ArrowLeft", "Home", "End", "Backspace", "Delete", "Enter"];
  assert.deepEqual(typed(named), named, "they move in the text and change it");
  assert.deepEqual(typed([..."pP[]sS?lLbB"]), []);
  assert.ok(!questions.isTyped({ key: "Enter", shiftKey: true }), "it runs the cell");
  const wide = [..."\uff11\uff10\uff0d\uff0e\u3002\uff4e\u30fc"];
  assert.deepEqual(typed(wide), wide, "full-width characters");
});

test("keys of an input method are typed into the field; a letter that is not Latin is identified by its code", () => {
  const process = { key: "Process", code: "KeyP", keyCode: 229 };
  assert.ok(questions.isTyped(process) && questions.isTyped({ key: "p", isComposing: true }));
  assert.ok(questions.isTyped({ key: "Enter", shiftKey: true, isComposing: true }));
  assert.ok(!questions.isTyped({ key: "\u0437", code: "KeyP" }) && questions.isTyped({ key: "\u0443", code: "KeyE" }));
});

const roomQuestion = {
  text: "What comes out?", run: 0, answer: "10", mistakes: [["112", "d"], ["8", "before"], ["None", "none"], ["2", "e"]],
};

test("a number question has its answer and its three likeliest mistakes, in the order of their numbers", () => {
  assert.deepEqual(choicesOf(roomQuestion), [
    { letter: "A", text: "8", isRight: false, reason: "before" },
    { letter: "B", text: "10", isRight: true, reason: "" },
    { letter: "C", text: "112", isRight: false, reason: "d" },
    { letter: "D", text: "None", isRight: false, reason: "none" },
  ]);
});

test("votes are whole numbers, also in full width; anything else is no vote", () => {
  assert.deepEqual(["12", " 7 ", "\uff11\uff12", "", "x", "-3", "1.5", "123456"].map(readVotes), [12, 7, 12, 0, 0, 0, 0, 0]);
});

test("the room is right if the right choice has more votes than every other", () => {
  const choices = choicesOf(roomQuestion);
  assert.ok(isRoomRight(choices, [3, 4, 0, 0]));
  assert.ok(!isRoomRight(choices, [4, 4, 0, 0]), "a tie");
  assert.ok(!isRoomRight(choices, [0, 0, 0, 0]), "no votes");
});
