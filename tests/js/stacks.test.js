// Stacks of equal boxes: the heights of their bars, and which bar a step belongs to.

import assert from "node:assert/strict";
import test from "node:test";

import { barAt, heightAt, memberAt } from "../../hookviz/player/browser/picture/stacks.js";

/** Layers 0 to 2: the forward goes up, and the backward comes down. */
const bars = [[[1, 3], [18, 20]], [[4, 6], [14, 17]], [[7, 9], [10, 13]]].map((spans, i) => ({
  count: 1, view: `0/m${i}`, spans, heights: [[spans[1][0], 0.5]],
}));
const view = { stacks: { g1: bars.slice(0, 2), g2: bars.slice(2) } };

test("a bar has the height of the last gradient that has arrived, and none before", () => {
  const heights = [[5, 0.3], [9, -1], [12, 1]];
  assert.deepEqual([4, 5, 8, 9, 40].map((step) => heightAt(heights, step)), [undefined, 0.3, 0.3, -1, 1]);
});

test("a step belongs to the bar that holds it, else to the next one", () => {
  assert.deepEqual([2, 5, 12, 15, 18].map((step) => barAt(bars, step)), [0, 1, 2, 1, 0]);
  assert.equal(barAt(bars.slice(0, 2), 12), 1);
  assert.equal(barAt(bars, 0), 0);
  assert.equal(barAt(bars, 30), 0);
});

test("the picture of a step is the one in which its member of a stack is open", () => {
  assert.deepEqual([2, 16, 10, 25].map((step) => memberAt(view, step)), ["0/m0", "0/m1", "0/m2", undefined]);
});
