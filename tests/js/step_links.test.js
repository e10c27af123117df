// Which links in the text are the player's.

import assert from "node:assert/strict";
import { test } from "node:test";

import { stepOf } from "../../hookviz/player/browser/step_links.js";

test("a link names its step as the screen does, from 1 on", () => {
  assert.deepEqual(["#step-1", "lesson.html#step-12"].map(stepOf), [0, 11]);
});

test("other links are none of the player's business", () => {
  const others = ["#step-by-step", "#step-0", "#step-", "#my-step-7b", "https://example.org/", "", null, undefined];
  assert.deepEqual(others.map(stepOf), others.map(() => null));
});
