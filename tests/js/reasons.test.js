// What the player puts under "Why": a title for the one gradient that is meant, and nothing where nothing is explained.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Language } from "../../hookviz/player/browser/language.js";
import { reasonsTitle } from "../../hookviz/player/browser/reasons.js";

const language = new Language({ "player.why": "Why?", "player.why_value": "Why {value}?" });
const titleOf = ({ kind, ...words }) => reasonsTitle(kind, { gradients: [], after: null, ...words }, language);

test("a gradient that arrives is named if it is short", () => {
  assert.equal(titleOf({ kind: "arrive", after: "8" }), "Why 8?");
  assert.equal(titleOf({ kind: "arrive", after: "[[1, 2],\n [3, 4]]" }), "Why?");
});

test("so is the only one that a node sends", () => {
  assert.equal(titleOf({ kind: "compute", gradients: [["to c", "8"]] }), "Why 8?");
  assert.equal(titleOf({ kind: "compute", gradients: [["to c", "8"], ["to d", "12"]] }), "Why?");
});

test("what a node takes is not what it sends", () => {
  assert.equal(titleOf({ kind: "compute", after: "3" }), "Why?");
});
