// Keys and their actions.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as keys from "../../hookviz/player/browser/common/key_bindings.js";

test("a key of an input method or of another script is identified by its code", () => {
  const hidden = [
    [{ key: "Process", code: "KeyP" }, "predict"],
    [{ key: "Process", code: "BracketRight" }, "nextHook"],
    [{ key: "\u0437", code: "KeyP" }, "predict"],
    [{ key: "\u0417", code: "KeyP", shiftKey: true }, "predict"],
    [{ key: "\uff50", code: "KeyP" }, "predict"],
    [{ key: "\uff1f", code: "Slash", shiftKey: true }, "help"],
    [{ key: "\u3000", code: "Space" }, "play"],
  ];
  for (const [event, action] of hidden) assert.equal(keys.actionOf(event, false), action);
});

test("a key that types a Latin letter or a sign is that letter, wherever it is on the keyboard", () => {
  const dvorak = [{ key: "p", code: "KeyR" }, { key: "l", code: "KeyP" }, { key: "[", code: "Minus" }, { key: "o", code: "KeyS" }];
  assert.deepEqual(dvorak.map((event) => keys.actionOf(event, false)), ["predict", "large", "previousHook", null]);
  const azerty = { "\u00e9": "Digit2", "\u00b2": "Backquote", "\u00b5": "Backslash", "&": "Digit1" };
  const qwertz = { "\u00fc": "BracketLeft", Dead: "BracketLeft" };
  const others = [...Object.entries(azerty), ...Object.entries(qwertz)];
  for (const [key, code] of others) assert.equal(keys.actionOf({ key, code }, false), null, key);
});

test("during a composition, keys belong to the input method", () => {
  assert.equal(keys.actionOf({ key: "p", code: "KeyP", isComposing: true }, false), null);
  assert.ok(keys.isComposing({ key: "Enter", keyCode: 229 }), "the end of a composition in Safari");
  assert.ok(!keys.isComposing({ key: "Enter", keyCode: 13 }));
});

test("a focused button keeps its Space", () => {
  assert.equal(keys.actionOf({ key: " " }, true), null);
  assert.equal(keys.actionOf({ key: "ArrowRight" }, true), "next");
});

test("combinations belong to the browser, but brackets may be typed through AltGr", () => {
  for (const held of ["ctrlKey", "metaKey", "altKey"]) assert.equal(keys.actionOf({ key: "ArrowLeft", [held]: true }, false), null);
  assert.equal(keys.actionOf({ key: "[", ctrlKey: true, altKey: true }, false), "previousHook");
  assert.equal(keys.actionOf({ key: "]", altKey: true }, false), "nextHook");
  assert.equal(keys.actionOf({ key: "[", metaKey: true }, false), null);
});
