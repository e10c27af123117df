// Links to steps.

import assert from "node:assert/strict";
import { test } from "node:test";

import { stepOf } from "../../hookviz/player/browser/step_links.js";

test("a link counts steps from 1, as the screen does", () => {
  assert.deepEqual(["#step-1", "lesson.html#step-12"].map(stepOf), [0, 11]);
});

test("other links have no step", () => {
  const others = ["#step-by-step", "#step-0", "#step-", "#my-step-7b", "https://example.org/", "", null, undefined];
  assert.deepEqual(others.map(stepOf), others.map(() => null));
});
