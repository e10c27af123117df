// The panel: names, the numbers behind cards, reasons, and chips of hooks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { reasonLines } from "../../hookviz/player/browser/panel/reasons.js";
import { hiddenNumbers } from "../../hookviz/player/browser/panel/cards.js";
import { joinFirings } from "../../hookviz/player/browser/panel/chip_groups.js";
import { splitNames } from "../../hookviz/player/browser/common/dom.js";

test("a name ends a line at its seams, and a number stays whole", () => {
  assert.deepEqual(splitNames("on net.encoder.0.head.weight"), ["on ", "net.", "encoder.", "0.", "head.", "weight"]);
  assert.deepEqual(splitNames("on net.0.weight"), ["on ", "net.0.weight"]);
  assert.deepEqual(splitNames("to BackwardHookFunctionBackward #13"), ["to ", "Backward", "Hook", "Function", "Backward ", "#13"]);
  assert.deepEqual(splitNames("with (4,\u00A07,\u00A032) norm"), ["with ", "(4,\u00A07,\u00A032) ", "norm"]);
  assert.deepEqual(splitNames("norm -0.25 of 4.771e-08"), ["norm ", "-0.25 ", "of ", "4.771e-08"]);
});

const card = (role, ...values) => ({ role, label: role, amounts: values.map((value) => ({ name: "", value, size: 1, note: "" })) });

test("the numbers behind the cards are offered where the cards do not show all of them", () => {
  const scalars = { cards: [card("before", "8"), card("after", "10")], before: "8", after: "10", gradients: [] };
  assert.deepEqual(hiddenNumbers(scalars), []);
  const matrices = { cards: [card("before", "5.2"), card("after", "10.4")], before: "1, 2\n3, 4", after: "2, 4\n6, 8", gradients: [] };
  assert.deepEqual(hiddenNumbers(matrices), [["before", "1, 2\n3, 4"], ["after", "2, 4\n6, 8"]]);
});

test("a remark on several formulas in a row stands once, below the last of them", () => {
  const reasons = [["grad × b", "Needs PyTorch."], ["grad × a", "Needs PyTorch."], ["grad", ""], ["-grad", "Summed."]];
  assert.deepEqual(reasonLines(reasons.map(([text, note]) => ({ text, source: "", note }))), [
    ["hv-formula", "grad × b"], ["hv-formula", "grad × a"], ["hv-source", "Needs PyTorch."],
    ["hv-formula", "grad"], ["hv-formula", "-grad"], ["hv-source", "Summed."],
  ]);
});

const firing = (step, name, on, changed = false) => {
  return { step, name, on, kind: "full backward hook", changed, short: changed ? "× 5" : "looked" };
};
const firings = [
  firing(2, "log", "layers.3"), firing(5, "log", "layers.2"), firing(6, "boost", "layers.1", true), firing(9, "boost", "layers.0"),
];
const summary = (groups) => groups.map(({ name, on, sign, steps }) => [name, on, sign, steps]);

test("consecutive calls of a hook that did the same share a chip", () => {
  assert.deepEqual(summary(joinFirings(firings, Infinity)), [
    ["log", "layers.3 … 2", "looked", [2, 5]], ["boost", "layers.1", "changed", [6]], ["boost", "layers.0", "looked", [9]],
  ]);
});

test("what is still hidden tells no calls apart", () => {
  assert.deepEqual(summary(joinFirings(firings, 6)).at(-1), ["boost", "layers.1 … 0", "open", [6, 9]]);
});
