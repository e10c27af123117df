// Searching a trace: queries and the order of hits.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MAX_HITS, parseNormQuery, rankEntry, readIndex, search } from "../../hookviz/player/browser/panel/search.js";

const COLUMNS = {
  kind: ["module", "module", "hook", "node", "leaf", "node"],
  label: ["model.layers.1", "model.layers.12", "λ grad * 2", "MulBackward0 (loss)", "model.layers.1.weight", "AddBackward0 #12"],
  note: ["Linear", "Linear", "model.layers.1.weight", "", "AccumulateGrad", ""],
  number: [-1, -1, -1, 3, 7, 12],
  view: ["0/m1", "0/m12", "0/m1", "0/", "0/m1", "0/g0"],
  steps: [[1], [2], [9], [0], [8, 6], []],
};
const entries = readIndex(COLUMNS);
const steps = Array.from({ length: 10 }, () => ({ norm: null }));
[steps[0].norm, steps[6].norm, steps[8].norm] = [1, 250, "nan"];
const labels = (query) => search(entries, steps, query).hits.map(({ label }) => label);

test("a query may ask for norms, in words or by size", () => {
  const asks = (query) => [0, 1e-7, 100, 101, Infinity, NaN].filter((norm) => parseNormQuery(query)(norm));
  assert.deepEqual(asks("NaN"), [NaN]);
  assert.deepEqual(asks("inf"), [Infinity]);
  assert.deepEqual(asks("zero"), [0]);
  assert.deepEqual(asks("norm > 100"), [101, Infinity]);
  assert.deepEqual(asks("norm>=1e2"), [100, 101, Infinity]);
  assert.deepEqual(asks("norm<1e-6"), [0, 1e-7]);
  assert.deepEqual(asks("norm<=.0"), [0]);
  assert.deepEqual(asks("norm=100"), [100]);
});

test("a name, an op, a class, a function and a number are found, in any case and order of words", () => {
  assert.deepEqual(labels("MULBACK"), ["MulBackward0 (loss)"]);
  assert.deepEqual(labels("loss"), ["MulBackward0 (loss)"]);
  assert.deepEqual(labels("linear 12"), ["model.layers.12"]);
  assert.deepEqual(labels("grad *"), ["λ grad * 2"]);
  assert.deepEqual(labels("#3"), ["MulBackward0 (loss)"]);
  assert.deepEqual(labels("7"), ["model.layers.1.weight"]);
});

test("an exact match comes before names that begin with the query, and these before names that contain it", () => {
  assert.deepEqual(labels("model.layers.1"), ["model.layers.1", "model.layers.12", "model.layers.1.weight", "λ grad * 2"]);
  assert.deepEqual(["addbackward0 #12", "12", "add", "backward", "nothing"].map((query) => rankEntry(entries[5], query)), [0, 0, 1, 3, -1]);
  assert.equal(rankEntry(entries[4], "weight"), 2);
});

test("an empty query has no hits, and of many hits the first are listed with the number of all", () => {
  assert.deepEqual(search(entries, steps, "  "), { hits: [], count: 0 });
  const many = Array.from({ length: 100 }, () => entries[0]);
  const { hits, count } = search(many, steps, "layers");
  assert.deepEqual([hits.length, count], [MAX_HITS, 100]);
});
