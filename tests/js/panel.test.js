// The panel: lines of code, names, labels, the numbers behind cards, reasons, and chips of hooks.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as panel from "../../hookviz/player/browser/panel/panel.js";
import { explainNames, reasonLines, reasonsTitle } from "../../hookviz/player/browser/panel/reasons.js";
import { hiddenNumbers } from "../../hookviz/player/browser/panel/cards.js";
import { joinFirings } from "../../hookviz/player/browser/panel/chip_groups.js";
import { sayWith } from "../../hookviz/player/browser/common/labels.js";
import { splitLines } from "../../hookviz/player/browser/panel/code_pane.js";
import { splitNames } from "../../hookviz/player/browser/common/dom.js";

test("placeholders are filled, and a missing label shows its key", () => {
  const speak = sayWith({ step_of: "Step {step} of {steps}", both: "{x} and {y}" });
  assert.equal(speak("step_of", { step: 9, steps: 16 }), "Step 9 of 16");
  assert.deepEqual([speak("nothing_like_it"), speak("toString")], ["nothing_like_it", "toString"]);
  assert.equal(speak("both", { x: "{y}", y: 0 }), "{y} and 0");
});

test("a name ends a line at its seams, and a number stays whole", () => {
  assert.deepEqual(splitNames("on net.encoder.0.head.weight"), ["on ", "net.", "encoder.", "0.", "head.", "weight"]);
  assert.deepEqual(splitNames("on net.0.weight"), ["on ", "net.0.weight"]);
  assert.deepEqual(splitNames("to BackwardHookFunctionBackward #13"), ["to ", "Backward", "Hook", "Function", "Backward ", "#13"]);
  assert.deepEqual(splitNames("with (4,\u00A07,\u00A032) norm"), ["with ", "(4,\u00A07,\u00A032) ", "norm"]);
  assert.deepEqual(splitNames("norm -0.25 of 4.771e-08"), ["norm ", "-0.25 ", "of ", "4.771e-08"]);
});

test("blank lines at the end are left out, those between stay", () => {
  assert.deepEqual(splitLines("a = 1\n\nb = a\n\n  \n"), ["a = 1", "", "b = a"]);
  assert.deepEqual(splitLines("  indented"), ["  indented"]);
});

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

const say = sayWith({ why: "Why?", why_value: "Why {value}?" });
const titleOf = ({ kind, ...words }) => reasonsTitle(kind, { gradients: [], after: null, ...words }, say);

test("the title contains an arriving gradient if it is short", () => {
  assert.equal(titleOf({ kind: "arrive", after: "8" }), "Why 8?");
  assert.equal(titleOf({ kind: "arrive", after: "[[1, 2],\n [3, 4]]" }), "Why?");
});

test("the title contains the only gradient that a node sends", () => {
  assert.equal(titleOf({ kind: "compute", gradients: [["to c", "8"]] }), "Why 8?");
  assert.equal(titleOf({ kind: "compute", gradients: [["to c", "8"], ["to d", "12"]] }), "Why?");
});

test("a remark on several formulas in a row stands once, below the last of them", () => {
  const reasons = [["grad × b", "Needs PyTorch."], ["grad × a", "Needs PyTorch."], ["grad", ""], ["-grad", "Summed."]];
  assert.deepEqual(reasonLines(reasons.map(([text, note]) => ({ text, source: "", note }))), [
    ["hv-formula", "grad × b"], ["hv-formula", "grad × a"], ["hv-source", "Needs PyTorch."],
    ["hv-formula", "grad"], ["hv-formula", "-grad"], ["hv-source", "Summed."],
  ]);
});

test("the inputs that formulas name are explained", () => {
  const explain = (...texts) => explainNames(texts.map((text) => ({ text })), sayWith({ why_self: "self: 1st", why_other: "other: 2nd" }));
  assert.equal(explain("grad × self = 1 × 6 = 6"), "self: 1st");
  assert.equal(explain("grad × other = 4", "grad × self = 6"), "self: 1st · other: 2nd");
  assert.equal(explain("grad × exponent"), "");
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
