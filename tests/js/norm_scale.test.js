// Norms of gradients as positions and colours on a scale.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  arrivalsByBox, colourAt, positionOnScale, normScale, formatNorm, normSpread,
} from "../../hookviz/player/browser/common/norm_scale.js";

const steps = [
  { glyph: "seed", norm: 1 },
  { glyph: "node", norm: null },
  { glyph: "hook", norm: null },
  { glyph: "node", norm: 100 },
  { glyph: "node", norm: 0 },
  { glyph: "node", norm: "nan" },
];

test("the scale covers the smallest and the largest norm above 0, and at least four powers of ten", () => {
  const { low, high, from, to } = normScale(steps);
  assert.deepEqual([low, high, from, to], [1, 100, -1, 3]);
  assert.deepEqual(normScale([{ norm: 1e-9 }, { norm: 10 }, { norm: "inf" }]), { low: 1e-9, high: 10, from: -9, to: 1 });
  assert.equal(normScale([{ norm: null }, { norm: 0 }, { norm: "nan" }]), null);
});

test("the position of a norm is logarithmic", () => {
  assert.deepEqual([0.01, 0.1, 10, 1000, 1e9].map((norm) => positionOnScale(norm, { from: -1, to: 3 })), [0, 0, 0.5, 1, 1]);
});

test("colours go from that of small norms through a neutral one to that of large norms", () => {
  const of = (place) => colourAt(place, "tint").match(/--hv-(\w+)-tint\) (\d+)%/).slice(1);
  const ends = [["small", "100"], ["small", "50"], ["large", "0"], ["large", "50"], ["large", "100"]];
  assert.deepEqual([0, 0.25, 0.5, 0.75, 1].map(of), ends);
});

test("gradients arrive at nodes, and in boxes with many steps inside", () => {
  const view = { steps: { n4: [0, 1, 3], "n4-p1": [2], "e4-0-5": [0] }, spans: { m3: [[0, 1], [4, 5]] } };
  const found = arrivalsByBox(steps, view, (id) => id === "n4");
  assert.deepEqual([...found], [["n4", [[0, 1], [3, 100]]], ["m3", [[0, 1], [4, 0], [5, "nan"]]]]);
});

test("norms up to a step: their range, zeros, and NaN or Inf", () => {
  const arrivals = [[0, 1], [3, 100], [4, 0], [5, "nan"]];
  assert.deepEqual(normSpread(arrivals, 2), { low: 1, high: 1, zero: false, bad: false });
  assert.deepEqual(normSpread(arrivals, 4), { low: 1, high: 100, zero: true, bad: false });
  assert.deepEqual(normSpread(arrivals, 9), { low: 1, high: 100, zero: true, bad: true });
  assert.ok(normSpread([], 9).low > normSpread([], 9).high);
});

test("a formatted norm is short, however large or small it is", () => {
  const shown = [2.63e-18, 0.0883, 1, 260.4, 99000, 123456, 8.96e8].map(formatNorm);
  assert.deepEqual(shown, ["2.6e-18", "0.088", "1", "260", "99000", "1.2e+5", "9e+8"]);
});
