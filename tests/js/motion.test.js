// The motion of steps: which pills move at which step of the a … e example.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isForward, planMotion } from "../../hookviz/player/browser/picture/motion_plan.js";

const KINDS = "seed tensor_hook compute arrive tensor_hook arrive retain_grad accumulate accumulate call forward".split(" ");
const steps = KINDS.map((kind) => ({ kind, glyph: kind === "tensor_hook" ? "hook" : kind, words: null }));

const gradient = (step, value) => [step, `gradient ${value}`, [value]];
const grad = (step, value) => [step, `.grad = ${value}`, [value]];
const change = (step, before, after) => [step, `${before} → ${after}`, [before, after]];
const plain = (step, value) => [step, value, []];

const view = {
  steps: { n3: [0, 1, 2], e1: [2], e2: [2], e3: [2], n2: [3, 4], n1: [5, 6, 7, 8], m0: [9, 10] },
  texts: {
    "n3-g": [gradient(0, "1"), gradient(1, "2")],
    "p0-v": [change(1, "1", "2")],
    "e1-v": [plain(2, "8")], "e2-v": [plain(2, "3")], "e3-v": [plain(2, "4")],
    "n2-g": [gradient(3, "8"), gradient(4, "8")],
    "p1-v": [change(4, "8", "8")],
    "n1-g": [gradient(5, "7"), grad(7, "7"), grad(8, "9")],
    "r1-v": [grad(6, "7")],
    "m0-i": [[9, "in 5", ["5"]]],
    "m0-a": [[10, "out 6", ["6"]]],
  },
  pins: { p0: { hook: 0, value: "p0-v" }, p1: { hook: 1, value: "p1-v" }, r1: { hook: -1, value: "r1-v" } },
  arrows: { e1: ["n3", "n2"], e2: ["n3", "n1"], e3: ["n3", "n1"] },
  spans: {},
};
Object.assign(view.steps, { p0: [1], p1: [4], r1: [6] });

const TEXTS = { e1: "e1-v", e2: "e2-v", e3: "e3-v", r1: "n1-g" };

/** Makes what the plan reads of the player, at one step. */
const momentAt = (step, changes = {}) => ({
  view,
  steps,
  step,
  effect: "",
  isDrawn: () => true,
  textOf: (id) => TEXTS[id] ?? "",
  ...changes,
});
const planAt = (step, changes) => planMotion(momentAt(step, changes));
const numbers = ({ trips }) => trips.map(({ number }) => number);

test("only a move to the next step or the next hook moves anything", () => {
  const moves = [[0, 1], [1, 4], [2, 4], [1, 0], [4, 1], [0, 4], [0, 2], [3, 3]];
  assert.deepEqual(moves.map(([from, to]) => isForward(steps, from, to)), [true, true, true, false, false, false, false, false]);
});

test("several gradients arrive at the same time, and then their sum appears", () => {
  const { trips } = planAt(5);
  assert.deepEqual(numbers({ trips }), ["3", "4", "3 + 4 = 7"]);
  const [one, other, sum] = trips;
  assert.equal(one.start + one.length, other.start + other.length);
  assert.equal(sum.start, one.start + one.length);
  assert.deepEqual(trips.map(({ reveals }) => reveals), [[], [], ["n1-g"]]);
});

test("a hook: the number goes into the pin, turns there, and comes out as the hook returned it", () => {
  const { trips, light } = planAt(1, { effect: "replaced" });
  const inwards = trips.find(({ to }) => to.text === "p0-v");
  const outwards = trips.find(({ to, from }) => to.text === "n3-g" && from.text === "p0-v");
  assert.deepEqual([inwards.number, inwards.from.text, outwards.number, outwards.reveals], ["1", "n3-g", "2", ["n3-g"]]);
  assert.ok(inwards.start + inwards.length <= light.start && light.start < outwards.start);
});

test("no pill of any step shows a number of a later step", () => {
  for (const [step] of steps.entries()) {
    const past = Object.fromEntries(Object.entries(view.texts).map(([id, texts]) => [id, texts.filter(([at]) => at <= step)]));
    assert.deepEqual(planAt(step), planAt(step, { view: { ...view, texts: past } }), `step ${step}`);
  }
});

test("all motion of a step ends before the pause of the step does", () => {
  const ends = steps.flatMap((_, step) => planAt(step).trips.map(({ start, length }) => start + length));
  assert.ok(Math.max(...ends) < 1000 && Math.min(...ends) > 200);
});
