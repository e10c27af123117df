// Large traces: what a box shows, and what a column of the timeline does.

import assert from "node:assert/strict";
import { test } from "node:test";

import { stateIn } from "../../hookviz/player/browser/logic.js";
import { arrivalsIn, colourAt, placeOf, scaleOf, shortNorm, spreadOf } from "../../hookviz/player/browser/norms.js";
import { svgOf } from "../../hookviz/player/browser/parts.js";
import { columnsOf, holding, placeAmong, stepsOf, zoomed } from "../../hookviz/player/browser/zoom.js";

test("a box is to come, now while a step is inside, begun between, and done in the end", () => {
  const spans = [[3, 5], [9, 9]];
  assert.deepEqual([0, 3, 5, 7, 9, 10].map((step) => stateIn(spans, step)), ["todo", "now", "now", "begun", "now", "done"]);
});

test("a box in which nothing happens never has its turn", () => {
  assert.equal(stateIn([], 7), "todo");
});

const frames = [
  { glyph: "seed", norm: 1 },
  { glyph: "node", norm: null },
  { glyph: "hook", norm: null },
  { glyph: "node", norm: 100 },
  { glyph: "node", norm: 0 },
  { glyph: "node", norm: "nan" },
];

// -- pictures

test("a picture is in its view, was sent with the player, or is another view's with its own ids and texts filled in", async () => {
  const shared = { svg: { pieces: ["<g id=\"", 0, "\">", 1, "</g>"], fill: ["n1", "one"] } };
  const part = async (name) => (name === "0/" ? shared : null);
  assert.equal(await svgOf({ svg: "<svg/>" }, [], part), "<svg/>");
  assert.equal(await svgOf({ svg: 1 }, ["<a/>", "<b/>"], part), "<b/>");
  assert.equal(await svgOf(shared, [], part), '<g id="n1">one</g>');
  assert.equal(await svgOf({ svg: { like: "0/", fill: ["n9", "nine"] } }, [], part), '<g id="n9">nine</g>');
  assert.equal(await svgOf({ svg: { like: "7/", fill: ["n9"] } }, [], part), undefined);
});

// -- the timeline

test("a column has the range of its steps' norms, and says whether a hook, a zero or no number is among them", () => {
  const [first, second, third] = columnsOf(frames, stepsOf(frames, "all"), 3);
  assert.deepEqual([first.low, first.high, [...first.glyphs], first.bad], [1, 1, ["node"], false]);
  assert.deepEqual([second.low, second.high, [...second.glyphs], second.bad], [100, 100, ["hook", "node"], false]);
  assert.deepEqual([third.low <= third.high, third.zero, third.bad], [false, true, true]);
});

test("a group shows all steps, or only those with hooks or problems", () => {
  assert.deepEqual(["all", "modules", "kinds"].map((group) => stepsOf(frames, group).length), [6, 6, 6]);
  assert.deepEqual(["hooks", "problems"].map((group) => stepsOf(frames, group)), [[2], [4, 5]]);
  assert.deepEqual(stepsOf([{ glyph: "exception", norm: null }, { glyph: "node", norm: 1 }], "problems"), [0]);
});

test("a step that is not shown stands at the last one before it", () => {
  assert.deepEqual([0, 2, 3, 8, 9, 50].map((step) => placeAmong([2, 4, 8], step)), [0, 0, 0, 2, 2, 2]);
  assert.equal(placeAmong([], 3), 0);
});

test("zooming halves what is shown and keeps the step where it was, within what there is", () => {
  assert.deepEqual(zoomed([0, 1000], 500, 0.5, 1000), [250, 750]);
  assert.deepEqual(zoomed([250, 750], 500, 2, 1000), [0, 1000]);
  assert.deepEqual(zoomed([0, 1000], 0, 0.5, 1000), [0, 500]);
  assert.deepEqual(zoomed([500, 1000], 999, 2, 1000), [0, 1000]);
  assert.deepEqual(zoomed([0, 1000], 400, 2, 1000), [0, 1000]);
  assert.deepEqual(zoomed([100, 120], 110, 0.5, 1000), [100, 120]);
  assert.deepEqual(zoomed([0, 3], 1, 0.5, 3), [0, 3]);
});

test("what is shown follows a step that leaves it", () => {
  assert.deepEqual(holding([100, 200], 150, 1000), [100, 200]);
  assert.deepEqual(holding([100, 200], 200, 1000), [150, 250]);
  assert.deepEqual(holding([100, 200], 3, 1000), [0, 100]);
  assert.deepEqual(holding([100, 200], 999, 1000), [900, 1000]);
});

// -- colours

test("the scale has the smallest and the largest norm above 0, and at least four powers of ten", () => {
  const { low, high, from, to } = scaleOf(frames);
  assert.deepEqual([low, high, from, to], [1, 100, -1, 3]);
  assert.deepEqual(scaleOf([{ norm: 1e-9 }, { norm: 10 }, { norm: "inf" }]), { low: 1e-9, high: 10, from: -9, to: 1 });
  assert.equal(scaleOf([{ norm: null }, { norm: 0 }, { norm: "nan" }]), null);
});

test("a norm has its place by powers of ten", () => {
  assert.deepEqual([0.01, 0.1, 10, 1000, 1e9].map((norm) => placeOf(norm, { from: -1, to: 3 })), [0, 0, 0.5, 1, 1]);
});

test("colours go from that of small norms by a neutral one to that of large ones", () => {
  const of = (place) => colourAt(place, "tint").match(/--hv-(\w+)-tint\) (\d+)%/).slice(1);
  assert.deepEqual([0, 0.25, 0.5, 0.75, 1].map(of), [["small", "100"], ["small", "50"], ["large", "0"], ["large", "50"], ["large", "100"]]);
});

test("gradients arrive at nodes, and in boxes with many steps inside", () => {
  const steps = new Map([["n4", [0, 1, 3]], ["n4-p1", [2]], ["e4-0-5", [0]]]);
  const found = arrivalsIn(frames, { steps, spans: new Map([["m3", [[0, 1], [4, 5]]]]) });
  assert.deepEqual([...found], [["n4", [[0, 1], [3, 100]]], ["m3", [[0, 1], [4, 0], [5, "nan"]]]]);
});

test("what has arrived up to a step: its range, zeros, and what is no number", () => {
  const arrivals = [[0, 1], [3, 100], [4, 0], [5, "nan"]];
  assert.deepEqual(spreadOf(arrivals, 2), { low: 1, high: 1, zero: false, bad: false });
  assert.deepEqual(spreadOf(arrivals, 4), { low: 1, high: 100, zero: true, bad: false });
  assert.deepEqual(spreadOf(arrivals, 9), { low: 1, high: 100, zero: true, bad: true });
  assert.ok(spreadOf([], 9).low > spreadOf([], 9).high);
});

test("a norm beside the scale is short, however large or small it is", () => {
  const shown = [2.63e-18, 0.0883, 1, 260.4, 99000, 123456, 8.96e8].map(shortNorm);
  assert.deepEqual(shown, ["2.6e-18", "0.088", "1", "260", "99000", "1.2e+5", "9e+8"]);
});
