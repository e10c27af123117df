// The panel: source lines, cards and sizes.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as panel from "../../hookviz/player/browser/panel/panel.js";

test("source lines have the numbers of the file, and one is marked", () => {
  const lines = panel.sourceLines("def c_hook(grad):\n    # Two more.\n    return grad + 2\n", 1, 3);
  assert.deepEqual(lines.map(({ number, marked }) => [number, marked]), [[1, false], [2, false], [3, true]]);
  assert.equal(lines[2].text, "    return grad + 2");
  assert.equal(panel.sourceLines("x\n\n", 7, null).length, 1);
});

test("there is a card for each value", () => {
  const labels = { before_label: "before", after_label: "after" };
  const both = panel.readCards({ ...labels, before: "8", after: "10" });
  assert.deepEqual(both, [{ label: "before", value: "8" }, { label: "after", value: "10" }]);
  assert.deepEqual(panel.readCards({ ...labels, before: null, after: "1" }), [{ label: "after", value: "1" }]);
  assert.deepEqual(panel.readCards({ ...labels, before: null, after: null }), []);
});
