// The hover texts of the marks of a timeline.

import assert from "node:assert/strict";
import test from "node:test";

import { sayWith } from "../../hookviz/player/browser/common/labels.js";
import { hoverText } from "../../hookviz/player/browser/timeline/timeline_slider.js";

const steps = [{ words: { title: "the seed at e" }, sign: null }, { words: { title: "c_hook on c" }, sign: "changed" }];
const context = (/** @type {boolean} */ predict) => ({
  run: { steps },
  say: sayWith({ step_of: "Step {step} of {steps}" }),
  model: { get: () => predict },
  driver: { position: () => ({ step: 0 }) },
});

test("a mark says what happens in its step, and which keys go on", () => {
  assert.equal(hoverText(context(false), 0), "Step 1 of 2: the seed at e (← →)");
  assert.equal(hoverText(context(false), 1), "Step 2 of 2: c_hook on c ([ ])");
});

test("while one predicts, a later mark says no more than its number", () => {
  assert.equal(hoverText(context(true), 1), "Step 2 of 2 (← →)");
});
