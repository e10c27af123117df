// Sentences from keys and arguments.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Language } from "../../hookviz/player/browser/language.js";

const texts = {
  "player.step_of": "Step {step} of {steps}",
  "sentence.hook.replaced": "{hook} replaced the gradient: {before} → {after}.",
  "name.none": "None",
  "join.list": ", ",
  "value.tuple": "({items})",
};

test("placeholders are filled, and a missing text shows its key", () => {
  const language = new Language(texts);
  assert.equal(language.say("player.step_of", { step: 9, steps: 16 }), "Step 9 of 16");
  assert.equal(language.say("player.nothing_like_it"), "player.nothing_like_it");
  assert.equal(new Language({ a: "{x} and {y}" }).say("a", { x: "{y}", y: 0 }), "{y} and 0");
});

test("a message is a text, or a key with arguments, which may be messages", () => {
  const language = new Language(texts);
  const pair = ["value.tuple", { items: ["join.list", ["8", ["name.none", {}]]] }];
  assert.equal(language.read("c_hook"), "c_hook");
  const message = ["sentence.hook.replaced", { hook: "c_hook", before: "8", after: pair }];
  assert.equal(language.read(message), "c_hook replaced the gradient: 8 → (8, None).");
});

test("a message is read in the language of the table of texts", () => {
  const message = ["sentence.hook.replaced", { hook: "c_hook", before: "8", after: "10" }];
  const chinese = new Language({ "sentence.hook.replaced": "{hook} 把梯度从 {before} 换成了 {after}。" });
  assert.equal(chinese.read(message), "c_hook 把梯度从 8 换成了 10。");
});

test("a table of texts grows", () => {
  const language = new Language({});
  assert.ok(!language.has("name.none"));
  language.add(texts);
  assert.ok(language.has("name.none") && !language.has("toString"));
});
