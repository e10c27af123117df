// The reasons: the title contains a single short gradient, and a remark on several formulas stands once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { sayWith } from "../../hookviz/player/browser/common/labels.js";
import { explainNames, reasonLines, reasonsTitle } from "../../hookviz/player/browser/panel/reasons.js";

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

test("the title does not contain the gradient that a node gets", () => {
  assert.equal(titleOf({ kind: "compute", after: "3" }), "Why?");
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
