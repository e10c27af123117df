// Room mode: the choices of a question with letters, and the votes for them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { choicesOf, isRoomRight, readVotes, sharesOf } from "../../hookviz/player/browser/predict/room_votes.js";

const number = { text: "What comes out?", run: 0, answer: "10", mistakes: [["112", "d"], ["8", "before"], ["None", "none"], ["2", "e"]] };

test("a number question has its answer and its three likeliest mistakes, in the order of their numbers", () => {
  assert.deepEqual(choicesOf(number), [
    { letter: "A", text: "8", isRight: false, reason: "before" },
    { letter: "B", text: "10", isRight: true, reason: "" },
    { letter: "C", text: "112", isRight: false, reason: "d" },
    { letter: "D", text: "None", isRight: false, reason: "none" },
  ]);
});

test("several numbers are ordered by the first one that differs", () => {
  const pairs = { text: "", run: 0, answer: "1, 3", mistakes: [["1, -2", "a"], ["0, 9", "b"], ["1, nan", "c"]] };
  assert.deepEqual(choicesOf(pairs).map(({ text }) => text), ["0, 9", "1, -2", "1, 3", "1, nan"]);
});

test("a question without known mistakes has one choice, which is no choice", () => {
  assert.equal(choicesOf({ text: "", run: 0, answer: "3", mistakes: [] }).length, 1);
});

test("a question with choices keeps their order and their reasons", () => {
  const choices = choicesOf({ text: "", run: 0, choices: ["c", "d"], right: 1, reasons: ["later", ""] });
  assert.deepEqual(choices.map(({ letter, text, isRight, reason }) => [letter, text, isRight, reason]), [
    ["A", "c", false, "later"], ["B", "d", true, ""],
  ]);
});

test("votes are whole numbers, also in full width; anything else is no vote", () => {
  assert.deepEqual(["12", " 7 ", "\uff11\uff12", "", "x", "-3", "1.5", "123456"].map(readVotes), [12, 7, 12, 0, 0, 0, 0, 0]);
});

test("shares are percents of all votes, and 0 without votes", () => {
  assert.deepEqual(sharesOf([1, 2, 0]), [33, 67, 0]);
  assert.deepEqual(sharesOf([0, 0]), [0, 0]);
});

test("the room is right if the right choice has more votes than every other", () => {
  const choices = choicesOf(number);
  assert.ok(isRoomRight(choices, [3, 4, 0, 0]));
  assert.ok(!isRoomRight(choices, [4, 4, 0, 0]), "a tie");
  assert.ok(!isRoomRight(choices, [0, 0, 0, 0]), "no votes");
});
