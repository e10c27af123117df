// Several runs of one program: baselines, switches and differences.

import assert from "node:assert/strict";
import { test } from "node:test";

import { baselineIndex, flipSwitch, switchesOff, compareFirings, splitTexts } from "../../hookviz/player/browser/compare/comparison.js";
import { oldTextIfChanged } from "../../hookviz/player/browser/common/stepping.js";

const ALL = { "": 0, 0: 1, 1: 2, "0,1": 3 };
const content = { runs: [{ baseline: 2 }, { baseline: 2 }, { baseline: null }] };

test("a run is compared with its baseline", () => {
  assert.deepEqual([0, 1, 2].map((shown) => baselineIndex(content, shown, false)), [2, 2, null]);
  assert.equal(baselineIndex({ runs: [] }, 0, false), null);
});

test("after a flip, runs are compared with the run with all hooks on, which has no baseline", () => {
  assert.deepEqual([0, 1, 2].map((shown) => baselineIndex(content, shown, true)), [null, 0, 0]);
});

test("the combination tells which switches are off", () => {
  assert.deepEqual([0, 1, 2, 3].map((shown) => switchesOff(ALL, shown)), [[], [0], [1], [0, 1]]);
  assert.deepEqual(switchesOff({}, 0), []);
});

test("a switch goes off and on again", () => {
  assert.deepEqual(flipSwitch(ALL, 0, 1), { shown: 2, resetsOthers: false });
  assert.deepEqual(flipSwitch(ALL, 2, 0), { shown: 3, resetsOthers: false });
  assert.deepEqual(flipSwitch(ALL, 3, 1), { shown: 1, resetsOthers: false });
  assert.deepEqual(flipSwitch(ALL, 1, 0), { shown: 0, resetsOthers: false });
});

test("if a combination was not recorded, all other switches go back on", () => {
  const resetsOthers = { "": 0, 0: 1, 1: 2, 10: 3 };
  assert.deepEqual(flipSwitch(resetsOthers, 1, 10), { shown: 3, resetsOthers: true });
  assert.deepEqual(flipSwitch(resetsOthers, 3, 10), { shown: 0, resetsOthers: false });
});

test("a row has the change in the baseline, and rows of the baseline alone are inserted at their steps", () => {
  const before = [{ step: 1, change: "4 → 6" }, { step: 3, change: "1 → 2" }, { step: 5, change: "7 → 7" }];
  const rows = compareFirings([{ step: 3, change: "1 → 9" }, { step: 5, change: "7 → 7" }], before);
  assert.deepEqual(rows.map(({ step, was, isMissing }) => [step, was, isMissing]), [
    [1, undefined, true],
    [3, "1 → 2", undefined],
    [5, "", undefined],
  ]);
  assert.equal(compareFirings(before, undefined), before);
});

test("an old text is shown only if it is not empty and differs", () => {
  const pairs = [["8", "8"], ["8", ""], ["", "8"], ["", ""]];
  assert.deepEqual(pairs.map(([was, now]) => oldTextIfChanged(was, now)), ["", "8", "", ""]);
});

test("the common beginning of two texts is shown once", () => {
  assert.deepEqual(splitTexts("gradient 10", "gradient 8"), ["gradient", "10", "8"]);
  assert.deepEqual(splitTexts("8 → 10", "9 → 9"), ["", "8 → 10", "9 → 9"]);
  assert.deepEqual(splitTexts("8 → 10", "8 → 9"), ["8 →", "10", "9"]);
  assert.deepEqual(splitTexts("8 → 10", "off"), ["", "8 → 10", "off"]);
  assert.deepEqual(splitTexts("a b", "a"), ["a", "b", ""]);
});
