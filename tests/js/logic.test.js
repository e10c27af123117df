// The player's decisions, on the a … e example with its four hooks.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as logic from "../../hookviz/player/browser/logic.js";

const fixture = JSON.parse(readFileSync(new URL("./fixture.json", import.meta.url), "utf8"));
const { frames, hooks, firings, svgs } = fixture;
const texts = JSON.parse(readFileSync(new URL("../../hookviz/support/messages/en.json", import.meta.url), "utf8"));
const words = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key.replace(/^(player|large)\./, ""), text]));
const index = logic.indexFrames(frames);
const LAST = frames.length - 1;
const C_HOOK = 8;

const stateOf = (id, step) => logic.stateAt(index.steps.get(id), step);
const textOf = (id, step) => logic.textAt(index.texts.get(id) ?? [], step);

test("an element is to come, then now, then done", () => {
  assert.deepEqual([0, 7, C_HOOK, 9, LAST].map((step) => stateOf("n1-p0", step)), ["todo", "todo", "now", "done", "done"]);
});

test("a box is done between the steps that name it, and now again when one does", () => {
  assert.deepEqual([3, 4, 5, 6, 7].map((step) => stateOf("n2", step)), ["todo", "now", "now", "now", "done"]);
  assert.equal(stateOf("e0-0-1", 5), "done");
  assert.equal(stateOf("e0-0-1", 7), "now");
});

test("an element that no step names has no steps", () => {
  assert.equal(index.steps.has("n99"), false);
});

test("an element named twice in one step counts once", () => {
  const { steps } = logic.indexFrames([{ on: ["n0", "n0"], texts: {} }]);
  assert.deepEqual(steps.get("n0"), [0]);
});

test("a text appears at its step and is replaced by a later one", () => {
  assert.deepEqual([3, 4, 5, 6, LAST].map((step) => textOf("n2-g", step)), ["", "gradient 12", "gradient 112", ".grad = 112", ".grad = 112"]);
});

test("an empty text clears", () => {
  const { texts } = logic.indexFrames([{ on: [], texts: { x: "1" } }, { on: [], texts: { x: "" } }]);
  assert.deepEqual([0, 1].map((step) => logic.textAt(texts.get("x"), step)), ["1", ""]);
});

test("stepping back takes a text away again", () => {
  assert.equal(textOf("n1-p0-v", C_HOOK), "8 → 10");
  assert.equal(textOf("n1-p0-v", C_HOOK - 1), "");
});

test("every element and text of the frames stands in the picture", () => {
  for (const id of [...index.steps.keys(), ...index.texts.keys()]) assert.ok(svgs[0].includes(`id="${id}"`), id);
});

test("the picture holds the final texts", () => {
  for (const id of index.texts.keys()) assert.ok(svgs[0].includes(`>${textOf(id, LAST)}</text>`), id);
});

test("a click goes round the steps of an element", () => {
  const steps = index.steps.get("n1");
  assert.deepEqual(steps, [7, 8, 9, 10, 11]);
  assert.deepEqual([0, 7, 11, LAST].map((step) => logic.nextOf(steps, step)), [7, 8, 7, 7]);
});

test("a click on an edge goes to the step that sends along it, not to the arrival", () => {
  assert.deepEqual(logic.sendingSteps(frames, index.steps.get("e0-0-1"), "e0-0-1"), [3]);
  assert.deepEqual(logic.sendingSteps(frames, index.steps.get("n1"), "n1"), [7, 8, 9, 10, 11]);
});

test("the brackets go from hook to hook and stay at the outermost", () => {
  const [on, back] = [[], []];
  for (let step = 0; on.length < 5; on.push(step)) step = logic.hookFrom(frames, step, 1);
  for (let step = LAST; back.length < 5; back.push(step)) step = logic.hookFrom(frames, step, -1);
  assert.deepEqual(on, [1, 5, 8, 9, 9]);
  assert.deepEqual(back, [9, 8, 5, 1, 1]);
});

test("every firing is a hook's step", () => {
  for (const { step } of firings) assert.equal(frames[step].glyph, "hook");
});

test("actions lead to steps and never past the ends", () => {
  const from = (step) => ["first", "previous", "next", "last", "nextHook"].map((action) => logic.stepFor(action, frames, step));
  assert.deepEqual(from(0), [0, 0, 1, LAST, 1]);
  assert.deepEqual(from(LAST), [0, LAST - 1, LAST, LAST, LAST]);
});

test("the ends are those of the pass that is shown, or of both where both are", () => {
  const kinds = ["absent", "seed", "compute", "absent", "absent"].map((kind) => ({ kind }));
  const ends = (pair) => ["first", "last", "next"].map((action) => logic.stepFor(action, kinds, 2, pair));
  assert.deepEqual(ends(false), [1, 2, 3]);
  assert.deepEqual(ends(true), [0, 4, 3]);
});

test("a step from outside is put in range", () => {
  assert.deepEqual([-3, 2.4, 99, NaN, undefined, "5"].map((step) => logic.clampStep(step, 16)), [0, 2, 15, 0, 0, 5]);
});

test("keys ask for what the list of keys says", () => {
  const asked = ["ArrowLeft", "ArrowRight", "[", "]", "Home", "End", " ", "?"].map((key) => logic.actionOf({ key }, false));
  assert.deepEqual(asked, ["previous", "next", "previousHook", "nextHook", "first", "last", "play", "help"]);
  assert.deepEqual(["a", "Enter", "Tab", "toString"].map((key) => logic.actionOf({ key }, false)), [null, null, null, null]);
  const letters = ["p", "b", "t", "n", "l", "f"].map((key) => logic.actionOf({ key }, true));
  assert.deepEqual(letters, ["predict", "stop", "tensors", "nodes", "large", "full"]);
  assert.equal(logic.actionOf({ key: "P", shiftKey: true }, false), "predict");
  assert.equal(logic.actionOf({ key: "Escape" }, false), "escape");
  assert.equal(logic.actionOf({ key: "Enter", shiftKey: true }, true), "leave");
});

test("a key that an input method or another script hides is known by its place", () => {
  const hidden = [
    { key: "Process", code: "KeyP" }, { key: "Process", code: "BracketRight" }, { key: "Process", code: "Slash", shiftKey: true },
    { key: "Process", code: "ArrowLeft" }, { key: "Process", code: "Space" }, { key: "\u0437", code: "KeyP" }, { key: "\u0417", code: "KeyP", shiftKey: true },
    { key: "\u30bb", code: "KeyP" }, { key: "\u3010", code: "BracketLeft" }, { key: "\uff50", code: "KeyP" }, { key: "\uff1f", code: "Slash", shiftKey: true },
    { key: "Unidentified", code: "KeyF" }, { key: "\u3000", code: "Space" },
  ];
  const asked = hidden.map((event) => logic.actionOf(event, false));
  assert.deepEqual(asked, ["predict", "nextHook", "help", "previous", "play", "predict", "predict", "predict", "previousHook", "predict", "help", "full", "play"]);
});

test("a key that types a Latin letter or a sign is that letter, wherever it is on the keyboard", () => {
  const dvorak = [{ key: "p", code: "KeyR" }, { key: "l", code: "KeyP" }, { key: "[", code: "Minus" }, { key: "r", code: "KeyO" }];
  assert.deepEqual(dvorak.map((event) => logic.actionOf(event, false)), ["predict", "large", "previousHook", null]);
  const others = [{ key: "\u00e9", code: "Digit2" }, { key: "\u00fc", code: "BracketLeft" }, { key: "\u00b2", code: "Backquote" }, { key: "\u00b5", code: "Backslash" }, { key: "Dead", code: "BracketLeft" }, { key: "&", code: "Digit1" }];
  assert.deepEqual(others.map((event) => logic.actionOf(event, false)), others.map(() => null), "accents of AZERTY and QWERTZ");
});

test("while letters are composed, keys are the input method's", () => {
  assert.equal(logic.actionOf({ key: "p", code: "KeyP", isComposing: true }, false), null);
  assert.ok(logic.isComposing({ key: "Enter", keyCode: 229 }), "the end of a composition in Safari");
  assert.ok(!logic.isComposing({ key: "Enter", keyCode: 13 }));
});

test("a focused button keeps its Space", () => {
  assert.equal(logic.actionOf({ key: " " }, true), null);
  assert.equal(logic.actionOf({ key: "ArrowRight" }, true), "next");
});

test("combinations are the browser's, but brackets may be typed through AltGr", () => {
  for (const held of ["ctrlKey", "metaKey", "altKey"]) assert.equal(logic.actionOf({ key: "ArrowLeft", [held]: true }, false), null);
  assert.equal(logic.actionOf({ key: "[", ctrlKey: true, altKey: true }, false), "previousHook");
  assert.equal(logic.actionOf({ key: "]", altKey: true }, false), "nextHook");
  assert.equal(logic.actionOf({ key: "[", metaKey: true }, false), null);
});

test("playing goes step by step and stops at the end", () => {
  assert.deepEqual(logic.afterPause(0, 16), { step: 1, playing: true });
  assert.deepEqual(logic.afterPause(14, 16), { step: 15, playing: false });
  assert.deepEqual(logic.afterPause(15, 16), { step: 15, playing: false });
  assert.deepEqual(logic.afterPause(0, 1), { step: 0, playing: false });
});

test("playing from the end starts at the beginning", () => {
  assert.deepEqual([0, 7, 15].map((step) => logic.playFrom(step, 16)), [0, 7, 0]);
});

test("speed shortens the pause, and a senseless one is taken as 1", () => {
  assert.deepEqual([0.5, 1, 2, 0, -1, NaN].map(logic.pauseAt), [2400, 1200, 600, 1200, 1200, 1200]);
});

test("words are filled, and a missing one shows its key", () => {
  assert.equal(logic.say(words, "step_of", { step: 9, steps: 16 }), "Step 9 of 16");
  assert.equal(logic.say(words, "nothing_like_it"), "nothing_like_it");
  assert.equal(logic.say({ a: "{x} and {y}" }, "a", { x: "{y}", y: 0 }), "{y} and 0");
});

test("every word that the parts ask for is there", () => {
  const parts = ["graph", "panel", "timeline", "ticks", "predict", "stops", "view", "controls", "keyboard", "widget"];
  const source = parts.map((name) => readFileSync(new URL(`../../hookviz/player/${name}.js`, import.meta.url), "utf8")).join("\n");
  const asked = [...source.matchAll(/say\((?:words|model\.get\("words"\)), "(\w+)"/g)].map(([, key]) => key);
  const shapes = [...source.matchAll(/^  (\w+): (?:ROUND|"M)/gm)].map(([, glyph]) => glyph);
  const legends = ["node", "hook", "retain", "grad", "exception", "note"];
  for (const glyph of legends) assert.ok(shapes.includes(glyph), glyph);
  const told = [...source.matchAll(/Hook: "(no_\w+)"/g)].map(([, key]) => key);
  assert.equal(told.length, 2);
  for (const key of [...asked, ...told, ...legends.map((glyph) => `legend_${glyph}`)]) assert.ok(key in words, key);
});

test("source lines carry the file's numbers and one mark", () => {
  const lines = logic.sourceLines(hooks[frames[C_HOOK].hook]);
  assert.deepEqual(lines.map(({ number, marked }) => [number, marked]), [[1, false], [2, false], [3, true]]);
  assert.equal(lines[2].text, "    return grad + 2");
  assert.equal(logic.sourceLines({ source: "x\n\n", first: 7, mark: null }).length, 1);
});

test("there is a card for each value that is known", () => {
  assert.deepEqual(logic.cardsOf(frames[C_HOOK]).map(({ value }) => value), ["8", "10"]);
  assert.deepEqual(logic.cardsOf(frames[0]), [{ label: "seed", value: "1" }]);
  assert.deepEqual(logic.cardsOf({ before: null, after: null }), []);
});

test("a matrix is set smaller than a number", () => {
  assert.equal(logic.sizeOf("-1.25e-05"), "one");
  assert.equal(logic.sizeOf("(11, 2, 3)"), "some");
  assert.equal(logic.sizeOf("[[1, 2],\n [3, 4]]"), "many");
});

test("the longer a sentence, the smaller it is set", () => {
  assert.deepEqual([64, 65, 121].map((n) => logic.sizeOfSentence("x".repeat(n))), ["", "hv-long", "hv-longer"]);
});

test("a picture fits its pane, is not blown up, and stays readable", () => {
  const size = { width: 500, height: 500, smallest: 12 };
  assert.equal(logic.scaleFor(size, { width: 600, height: 800 }), 1.2);
  assert.equal(logic.scaleFor(size, { width: 2000, height: 2000 }), 1.6);
  assert.equal(logic.scaleFor(size, { width: 100, height: 100 }), 1);
  assert.equal(logic.scaleFor(size, { width: 100, height: 100, smallest: 18 }), 1.5);
  assert.equal(logic.scaleFor(size, { width: 450, height: 800, least: 10.5 }), 0.9);
  assert.equal(logic.scaleFor(size, { width: 400, height: 800, least: 10.5 }), 1);
  assert.equal(logic.scaleFor(size, { width: 450, height: 100, least: 10.5 }), 0.9);
  assert.equal(logic.scaleFor(size, { width: 600, height: 100, least: 10.5 }), 1);
});

test("Jupyter's theme wins over an editor's, Colab's, Furo's and the system's", () => {
  assert.equal(logic.isDark({ jupyter: "true", system: true }), false);
  assert.equal(logic.isDark({ jupyter: "false", system: false }), true);
  assert.equal(logic.isDark({ editor: "vscode-dark", system: false }), true);
  assert.equal(logic.isDark({ editor: "vscode-high-contrast", system: false }), true);
  assert.equal(logic.isDark({ editor: "vscode-light", system: true }), false);
  assert.equal(logic.isDark({ colab: "dark", system: false }), true);
  assert.equal(logic.isDark({ furo: "dark", system: false }), true);
  assert.equal(logic.isDark({ furo: "light", system: true }), false);
  assert.equal(logic.isDark({ furo: "auto", system: true }), true);
  assert.equal(logic.isDark({ system: true }), true);
});

test("an action that is no way along the steps stays at the step", () => {
  assert.equal(logic.stepFor("split", frames, 5), 5);
});
