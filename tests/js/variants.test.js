// What the player decides about several passes of one program.

import assert from "node:assert/strict";
import { test } from "node:test";

import { chosen, flip, offAt, parted, rowsBeside } from "../../hookviz/player/browser/variants.js";
import { wasUnlike } from "../../hookviz/player/browser/logic.js";

const POOL = [{ title: "seed" }, { title: "hook" }, { title: "absent" }];
const VARIANTS = [
  { frames: [0, 1], firings: [{ step: 1, change: "4 → 6" }], label: "every hook is on", beside: null, notes: [] },
  { frames: [0, 2], firings: [], label: "without c_hook", beside: 0, notes: ["raised"] },
  { frames: [0, 0], firings: [], label: "before", beside: null, notes: [] },
];
const model = (given) => {
  const traits = { frames: POOL, firings: [], variants: VARIANTS, shown: 0, flipped: false, ...given };
  return { get: (name) => traits[name] };
};
const ALL = { "": 0, 0: 1, 1: 2, "0,1": 3 };

test("a plain trace shows its own frames", () => {
  const shown = chosen(model({ firings: [7], variants: [] }));
  assert.deepEqual(shown, { frames: POOL, firings: [7], notes: [], label: "", beside: null });
});

test("a variant shows its frames out of those of all, and those it is compared with", () => {
  const shown = chosen(model({ shown: 1 }));
  assert.deepEqual(shown.frames.map((frame) => frame.title), ["seed", "absent"]);
  assert.deepEqual(shown.beside.frames.map((frame) => frame.title), ["seed", "hook"]);
  assert.deepEqual([shown.label, shown.notes, shown.beside.label], ["without c_hook", ["raised"], "every hook is on"]);
  assert.equal(chosen(model({})).beside, null);
});

test("after a flip everything is compared with every hook on, and that with nothing", () => {
  const moved = VARIANTS.map((variant) => ({ ...variant, beside: 2 }));
  const at = (shown, flipped) => chosen(model({ variants: moved, shown, flipped })).beside?.label;
  assert.deepEqual([at(1, false), at(1, true), at(0, false), at(0, true)], ["before", "every hook is on", "before", undefined]);
});

test("which hooks are off is read from the combination", () => {
  assert.deepEqual([0, 1, 2, 3].map((shown) => offAt(ALL, shown)), [[], [0], [1], [0, 1]]);
  assert.deepEqual(offAt({}, 0), []);
});

test("a switch goes off and on again", () => {
  assert.deepEqual(flip(ALL, 0, 1), { shown: 2, alone: false });
  assert.deepEqual(flip(ALL, 2, 0), { shown: 3, alone: false });
  assert.deepEqual(flip(ALL, 3, 1), { shown: 1, alone: false });
  assert.deepEqual(flip(ALL, 1, 0), { shown: 0, alone: false });
});

test("where a combination was not recorded the others go back on", () => {
  const alone = { "": 0, 0: 1, 1: 2, 10: 3 };
  assert.deepEqual(flip(alone, 1, 10), { shown: 3, alone: true });
  assert.deepEqual(flip(alone, 3, 10), { shown: 0, alone: false });
});

test("a row says what it was, and one that is missing stands in its place", () => {
  const before = [{ step: 1, change: "4 → 6" }, { step: 3, change: "1 → 2" }, { step: 5, change: "7 → 7" }];
  const rows = rowsBeside([{ step: 3, change: "1 → 9" }, { step: 5, change: "7 → 7" }], before);
  assert.deepEqual(rows.map(({ step, was, missing }) => [step, was, missing]), [
    [1, undefined, true],
    [3, "1 → 2", undefined],
    [5, "", undefined],
  ]);
  assert.equal(rowsBeside(before, null), before);
});

test("a text was another one only if there was one", () => {
  assert.deepEqual([wasUnlike("8", "8"), wasUnlike("8", ""), wasUnlike("", "8"), wasUnlike(undefined, "8")], ["", "8", "", ""]);
});

test("what two texts begin with is said once", () => {
  assert.deepEqual(parted("gradient 10", "gradient 8"), ["gradient", "10", "8"]);
  assert.deepEqual(parted("8 → 10", "9 → 9"), ["", "8 → 10", "9 → 9"]);
  assert.deepEqual(parted("8 → 10", "8 → 9"), ["8 →", "10", "9"]);
  assert.deepEqual(parted("8 → 10", "off"), ["", "8 → 10", "off"]);
  assert.deepEqual(parted("a b", "a"), ["a", "b", ""]);
});
