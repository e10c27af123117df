import assert from "node:assert/strict";
import { test } from "node:test";

import { hidesReasons } from "../../hookviz/player/browser/unfired_list.js";

const context = (predict) => ({ model: { get: () => predict }, run: { steps: [{}, {}, {}] } });

test("the reasons are hidden while predicting, until the last step", () => {
  assert.deepEqual([0, 1, 2].map((step) => hidesReasons(context(true), step)), [true, true, false]);
  assert.equal(hidesReasons(context(false), 0), false);
});
