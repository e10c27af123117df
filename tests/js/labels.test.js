// The labels of the player.

import assert from "node:assert/strict";
import { test } from "node:test";

import { sayWith } from "../../hookviz/player/browser/common/labels.js";

test("placeholders are filled, and a missing label shows its key", () => {
  const say = sayWith({ step_of: "Step {step} of {steps}", both: "{x} and {y}" });
  assert.equal(say("step_of", { step: 9, steps: 16 }), "Step 9 of 16");
  assert.deepEqual([say("nothing_like_it"), say("toString")], ["nothing_like_it", "toString"]);
  assert.equal(say("both", { x: "{y}", y: 0 }), "{y} and 0");
});
