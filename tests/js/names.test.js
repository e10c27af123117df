// Where a name may end a line.

import assert from "node:assert/strict";
import test from "node:test";

import { splitNames } from "../../hookviz/player/browser/common/dom.js";

test("a name ends a line at its seams, and a number stays whole", () => {
  assert.deepEqual(splitNames("on net.encoder.0.head.weight"), ["on ", "net.", "encoder.", "0.", "head.", "weight"]);
  assert.deepEqual(splitNames("on net.0.weight"), ["on ", "net.0.weight"]);
  assert.deepEqual(splitNames("to BackwardHookFunctionBackward #13"), ["to ", "Backward", "Hook", "Function", "Backward ", "#13"]);
  assert.deepEqual(splitNames("with (4,\u00A07,\u00A032) norm"), ["with ", "(4,\u00A07,\u00A032) ", "norm"]);
  assert.deepEqual(splitNames("norm -0.25 of 4.771e-08"), ["norm ", "-0.25 ", "of ", "4.771e-08"]);
});
