// What the player decides about several runs of one program.

import assert from "node:assert/strict";
import { test } from "node:test";

import { besideOf, flip, offAt, rowsBeside, splitTexts } from "../../hookviz/player/browser/comparison.js";
import { wasUnlike } from "../../hookviz/player/browser/stepping.js";

const ALL = { "": 0, 0: 1, 1: 2, "0,1": 3 };
const content = { runs: [{ beside: 2 }, { beside: 2 }, { beside: null }] };

test("a run is compared with the one that it names", () => {
  assert.deepEqual([0, 1, 2].map((shown) => besideOf(content, shown, false)), [2, 2, null]);
  assert.equal(besideOf({ runs: [] }, 0, false), null);
});

test("after a flip everything is compared with every hook on, and that with nothing", () => {
  assert.deepEqual([0, 1, 2].map((shown) => besideOf(content, shown, true)), [null, 0, 0]);
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
  const read = (message) => message;
  const before = [{ step: 1, change: "4 → 6" }, { step: 3, change: "1 → 2" }, { step: 5, change: "7 → 7" }];
  const rows = rowsBeside([{ step: 3, change: "1 → 9" }, { step: 5, change: "7 → 7" }], before, read);
  assert.deepEqual(rows.map(({ step, was, isMissing }) => [step, was, isMissing]), [
    [1, undefined, true],
    [3, "1 → 2", undefined],
    [5, "", undefined],
  ]);
  assert.equal(rowsBeside(before, undefined, read), before);
});

test("a text was another one only if there was one", () => {
  assert.deepEqual([wasUnlike("8", "8"), wasUnlike("8", ""), wasUnlike("", "8"), wasUnlike("", "")], ["", "8", "", ""]);
});

test("what two texts begin with is said once", () => {
  assert.deepEqual(splitTexts("gradient 10", "gradient 8"), ["gradient", "10", "8"]);
  assert.deepEqual(splitTexts("8 → 10", "9 → 9"), ["", "8 → 10", "9 → 9"]);
  assert.deepEqual(splitTexts("8 → 10", "8 → 9"), ["8 →", "10", "9"]);
  assert.deepEqual(splitTexts("8 → 10", "off"), ["", "8 → 10", "off"]);
  assert.deepEqual(splitTexts("a b", "a"), ["a", "b", ""]);
});
