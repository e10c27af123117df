// Swipes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { swipeDirection } from "../../hookviz/player/browser/swipe.js";

test("a quick horizontal swipe steps", () => {
  assert.equal(swipeDirection({ dx: -80, dy: 10, milliseconds: 200 }), 1);
  assert.equal(swipeDirection({ dx: 80, dy: -10, milliseconds: 200 }), -1);
});

test("a tap, a scroll and a slow drag do not step", () => {
  assert.equal(swipeDirection({ dx: -20, dy: 0, milliseconds: 100 }), 0);
  assert.equal(swipeDirection({ dx: -80, dy: 60, milliseconds: 100 }), 0);
  assert.equal(swipeDirection({ dx: -200, dy: 0, milliseconds: 900 }), 0);
});
