import assert from "node:assert/strict";
import { test } from "node:test";

import { chooseTitles, makePassTitles, sayPosition } from "../../hookviz/player/browser/common/pass_titles.js";

const TEXTS = {
  pass: "Pass {number}", pass_loss: "Pass {number} · loss {loss}", number_loss: "{number} · loss {loss}",
  pass_of: "pass {number} of {count}", step_of: "Step {step} of {steps}",
};
/** @type {any} */
const say = (/** @type {keyof typeof TEXTS} */ key, /** @type {{ [name: string]: unknown }} */ facts) => {
  return TEXTS[key].replace(/\{(\w+)\}/g, (_, name) => String(facts[name]));
};
const passes = (/** @type {number[]} */ passNumbers, /** @type {string[]} */ losses) => ({ run: { passNumbers, losses }, say });
const widthOf = (/** @type {string} */ title) => title.length;

test("titles of passes have losses where there is room", () => {
  const titles = makePassTitles(passes([1, 2], ["0.5", "0.25"]));
  const shown = (/** @type {number} */ width) => chooseTitles(titles, 2, width, widthOf)(1);
  assert.deepEqual([100, 26, 13, 4].map(shown), ["Pass 2 · loss 0.25", "2 · loss 0.25", "2 · loss 0.25", "Pass 2"]);
});

test("without losses a title is the number, and a pass without one has its number", () => {
  assert.deepEqual(makePassTitles(passes([1, 1203], ["", ""])).map((titleOf) => titleOf(1)), ["Pass 1,203"]);
  assert.equal(makePassTitles(passes([1, 2], ["0.5", ""]))[0](1), "Pass 2");
});

test("a position says which of all passes it is in", () => {
  const at = (/** @type {number[]} */ passNumbers) => {
    const steps = /** @type {any} */ (passNumbers.map((_, picture) => ({ picture })));
    return sayPosition({ run: { steps, passNumbers }, say }, passNumbers.length - 1);
  };
  assert.equal(at([1]), "Step 1 of 1");
  assert.equal(at([1, 2]), "Step 2 of 2 · pass 2 of 2");
  assert.equal(at([26, 27]), "Step 2 of 2 · Pass 27");
});
