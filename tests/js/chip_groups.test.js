// The chips of hooks: consecutive calls that did the same share one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { joinFirings, joinOwners } from "../../hookviz/player/browser/panel/chip_groups.js";

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

test("owners without numbers are named by the first and the last", () => {
  assert.deepEqual([joinOwners(["a", "a"]), joinOwners(["a", "b"]), joinOwners(["a (call 2)", "a"])], ["a", "a … b", "a"]);
});
