// The size of a picture.

import assert from "node:assert/strict";
import { test } from "node:test";

import { scaleFor } from "../../hookviz/player/browser/fit.js";

test("a picture fits its pane, is not enlarged too much, and stays readable", () => {
  const size = { width: 500, height: 500, smallest: 12 };
  assert.equal(scaleFor(size, { width: 600, height: 800 }), 1.2);
  assert.equal(scaleFor(size, { width: 2000, height: 2000 }), 1.6);
  assert.equal(scaleFor(size, { width: 100, height: 100 }), 1);
  assert.equal(scaleFor(size, { width: 100, height: 100, smallest: 18 }), 1.5);
  assert.equal(scaleFor(size, { width: 450, height: 800, least: 10.5 }), 0.9);
  assert.equal(scaleFor(size, { width: 400, height: 800, least: 10.5 }), 1);
  assert.equal(scaleFor(size, { width: 450, height: 100, least: 10.5 }), 0.9);
  assert.equal(scaleFor(size, { width: 600, height: 100, least: 10.5 }), 1);
});
