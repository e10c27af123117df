// The panel: source lines, and the numbers behind the cards.

import assert from "node:assert/strict";
import { test } from "node:test";

import { hiddenNumbers } from "../../hookviz/player/browser/panel/cards.js";
import * as panel from "../../hookviz/player/browser/panel/panel.js";

test("source lines have the numbers of the file, and one is marked", () => {
  const lines = panel.sourceLines("def c_hook(grad):\n    # Two more.\n    return grad + 2\n", 1, 3);
  assert.deepEqual(lines.map(({ number, marked }) => [number, marked]), [[1, false], [2, false], [3, true]]);
  assert.equal(lines[2].text, "    return grad + 2");
  assert.equal(panel.sourceLines("x\n\n", 7, null).length, 1);
});

const card = (role, ...values) => ({ role, label: role, amounts: values.map((value) => ({ name: "", value, size: 1, note: "" })) });

test("the numbers behind the cards are offered where the cards do not show all of them", () => {
  const scalars = { cards: [card("before", "8"), card("after", "10")], before: "8", after: "10", gradients: [] };
  assert.deepEqual(hiddenNumbers(scalars), []);
  const matrices = { cards: [card("before", "5.2"), card("after", "10.4")], before: "1, 2\n3, 4", after: "2, 4\n6, 8", gradients: [] };
  assert.deepEqual(hiddenNumbers(matrices), [["before", "1, 2\n3, 4"], ["after", "2, 4\n6, 8"]]);
});
