// Moving from step to step, and the states of elements, on the a … e example with its four hooks.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as stepping from "../../hookviz/player/browser/common/stepping.js";

const GLYPHS = "seed hook retain node node hook grad node hook hook retain node node grad node grad";
const steps = GLYPHS.split(" ").map((glyph) => ({ glyph, kind: glyph }));
const LAST = steps.length - 1;

test("an element is to come, then now, then done, and now again", () => {
  assert.deepEqual([0, 4, 5, 7, 9].map((step) => stepping.stateAt([4, 7], step)), ["todo", "now", "done", "now", "done"]);
});

test("a box is to come, now at a step inside, begun between two spans, and done after the last", () => {
  const spans = [[3, 5], [9, 9]];
  const states = [0, 3, 5, 7, 9, 10].map((step) => stepping.stateIn(spans, step));
  assert.deepEqual(states, ["todo", "now", "now", "begun", "now", "done"]);
});

test("a text appears at its step, is replaced by a later one, and disappears when stepping back", () => {
  const changes = [[4, "gradient 12", ["12"]], [5, "gradient 112", ["112"]], [6, ".grad = 112", ["112"]]];
  const texts = [3, 4, 5, LAST, 3].map((step) => stepping.textAt(changes, step)?.[1]);
  assert.deepEqual(texts, [undefined, "gradient 12", "gradient 112", ".grad = 112", undefined]);
  assert.equal(stepping.textAt([[0, "1", []], [1, "", []]], 1)?.[1], "", "an empty text clears");
});

test("clicks cycle through the steps of an element", () => {
  const named = [7, 8, 9, 10, 11];
  assert.deepEqual([0, 7, 11, LAST].map((step) => stepping.nextStepAmong(named, step)), [7, 8, 7, 7]);
});

test("the brackets go from hook to hook, and stay at the first and the last", () => {
  const [on, back] = [[], []];
  for (let step = 0; on.length < 5; on.push(step)) step = stepping.nearestHookStep(steps, step, 1);
  for (let step = LAST; back.length < 5; back.push(step)) step = stepping.nearestHookStep(steps, step, -1);
  assert.deepEqual(on, [1, 5, 8, 9, 9]);
  assert.deepEqual(back, [9, 8, 5, 1, 1]);
});

test("actions have target steps, which are never past the ends", () => {
  const from = (step) => ["first", "previous", "next", "last", "nextHook"].map((action) => stepping.targetStep(action, steps, step));
  assert.deepEqual(from(0), [0, 0, 1, LAST, 1]);
  assert.deepEqual(from(LAST), [0, LAST - 1, LAST, LAST, LAST]);
});

test("first and last step are those of the run that is shown, or of both in a split view", () => {
  const kinds = ["absent", "seed", "compute", "absent", "absent"].map((kind) => ({ kind }));
  const ends = (pair) => ["first", "last", "next"].map((action) => stepping.targetStep(action, kinds, 2, pair));
  assert.deepEqual(ends(false), [1, 2, 3]);
  assert.deepEqual(ends(true), [0, 4, 3]);
});

test("a step of a linked control is clamped", () => {
  assert.deepEqual([-3, 2.4, 99, NaN, undefined, "5"].map((step) => stepping.clampStep(step, 16)), [0, 2, 15, 0, 0, 5]);
});

test("playing goes step by step and stops at the end", () => {
  const played = Array.from({ length: 16 }, (_, i) => ({ glyph: i === 4 ? "hook" : "node" }));
  assert.deepEqual(stepping.positionAfterPause(played, 0, false), { step: 1, playing: true });
  assert.deepEqual(stepping.positionAfterPause(played, 14, false), { step: 15, playing: false });
  assert.deepEqual(stepping.positionAfterPause(played, 15, false), { step: 15, playing: false });
  assert.deepEqual(stepping.positionAfterPause(played.slice(0, 1), 0, false), { step: 0, playing: false });
  // From hook to hook, and at last to the end.
  assert.deepEqual([0, 4].map((step) => stepping.positionAfterPause(played, step, true).step), [4, 15]);
});

test("playing from the end starts at the beginning", () => {
  assert.deepEqual([0, 7, 15].map((step) => stepping.playStart(step, 16)), [0, 7, 0]);
});

test("speed shortens the pause, and an invalid speed counts as 1", () => {
  assert.deepEqual([0.5, 1, 2, 0, -1, NaN].map(stepping.pauseMilliseconds), [2400, 1200, 600, 1200, 1200, 1200]);
});

test("the kinds of the legend are in the order of their first step; a seed counts as a node", () => {
  assert.deepEqual(stepping.legendKinds(steps), ["node", "hook", "retain", "grad"]);
});
