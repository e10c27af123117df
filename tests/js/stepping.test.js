// Moving from step to step, the states of elements on the a … e example, and stacks of equal boxes.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as stepping from "../../hookviz/player/browser/common/stepping.js";
import { memberAt } from "../../hookviz/player/browser/picture/stacks.js";

const GLYPHS = "seed hook retain node node hook grad node hook hook retain node node grad node grad";
const steps = GLYPHS.split(" ").map((glyph) => ({ glyph, kind: glyph }));
const LAST = steps.length - 1;

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

test("playing goes step by step and stops at the end", () => {
  const played = Array.from({ length: 16 }, (_, i) => ({ glyph: i === 4 ? "hook" : "node" }));
  assert.deepEqual(stepping.positionAfterPause(played, 0, false), { step: 1, playing: true });
  assert.deepEqual(stepping.positionAfterPause(played, 14, false), { step: 15, playing: false });
  assert.deepEqual(stepping.positionAfterPause(played, 15, false), { step: 15, playing: false });
  assert.deepEqual(stepping.positionAfterPause(played.slice(0, 1), 0, false), { step: 0, playing: false });
  // From hook to hook, and at last to the end.
  assert.deepEqual([0, 4].map((step) => stepping.positionAfterPause(played, step, true).step), [4, 15]);
});

/** Layers 0 to 2: the forward goes up, and the backward comes down. */
const bars = [[[1, 3], [18, 20]], [[4, 6], [14, 17]], [[7, 9], [10, 13]]].map((spans, i) => ({
  count: 1, view: `0/m${i}`, spans, heights: [[spans[1][0], 0.5]],
}));
const view = { stacks: { g1: bars.slice(0, 2), g2: bars.slice(2) } };

test("the picture of a step is the one in which its member of a stack is open", () => {
  assert.deepEqual([2, 16, 10, 25].map((step) => memberAt(view, step)), ["0/m0", "0/m1", "0/m2", undefined]);
});
