// Addresses of steps, and the light or dark theme.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isDark } from "../../hookviz/player/browser/host/theme.js";
import { readAddress, resolveTarget, switchNames, writeAddress } from "../../hookviz/player/browser/host/address.js";

/** @param {string | null | undefined} address */
const stepOf = (address) => readAddress(address)?.step ?? null;

test("a link counts steps from 1, as the screen does", () => {
  assert.deepEqual(["#step-1", "lesson.html#step-12"].map(stepOf), [0, 11]);
});

test("every name of a hook survives the address", () => {
  const off = ["λ grad*2", "c_hook@c", "a,b&c#d%e", "钩子"];
  const address = writeAddress({ step: 6, off });
  assert.match(address, /^#step-7&off=[^\s]+$/);
  assert.deepEqual(readAddress(address), { step: 6, off });
  assert.equal(writeAddress({ step: 0, off: [] }), "#step-1");
  assert.deepEqual(readAddress("#step-2&off=50%"), { step: 1, off: ["50%"] });
});

test("hooks with one label are told apart by their tensors", () => {
  const switches = [["c_hook", "c"], ["double", "c"], ["double", "d"], ["double", "d"]].map(([label, on]) => ({ label, on }));
  assert.deepEqual(switchNames(switches), ["c_hook", "double@c", "double@d", "double@d#2"]);
});

const COMBINATIONS = { "": 0, 0: 1, 1: 2, 2: 3, "0,1": 4 };
const PLAYER = { names: ["f", "g@c", "g@d"], labels: ["f", "g", "g"], combinations: COMBINATIONS, shown: 0, count: 16 };

test("a link leads to the run with its hooks off", () => {
  const expected = { step: 3, unknown: [], isAlone: false, isPast: false };
  assert.deepEqual(resolveTarget({ step: 3, off: ["g@c", "f"] }, PLAYER), { ...expected, shown: 4 });
  assert.deepEqual(resolveTarget({ step: 3, off: ["g"] }, PLAYER), { ...expected, shown: 2 });
  assert.deepEqual(resolveTarget({ step: 3, off: [] }, { ...PLAYER, shown: 4 }), { ...expected, shown: 0 });
});

test("of what does not exist, the nearest is shown", () => {
  const past = { shown: 0, step: 15, unknown: ["x"], isAlone: false, isPast: true };
  assert.deepEqual(resolveTarget({ step: 99, off: ["x"] }, PLAYER), past);
  const both = resolveTarget({ step: 0, off: ["f", "g@d"] }, PLAYER);
  assert.deepEqual(both, { shown: 1, step: 0, unknown: [], isAlone: true, isPast: false });
});

test("Jupyter's theme wins over those of the classic notebook, an editor, Colab, Furo and the system", () => {
  assert.equal(isDark({ jupyter: "true", system: true }), false);
  assert.equal(isDark({ jupyter: "false", system: false }), true);
  assert.equal(isDark({ classes: "vscode-dark", system: false }), true);
  assert.equal(isDark({ classes: "vscode-high-contrast", system: false }), true);
  assert.equal(isDark({ classes: "vscode-light", system: true }), false);
  assert.equal(isDark({ colab: "dark", system: false }), true);
  assert.equal(isDark({ classes: "notebook_app edit_mode", system: true }), false);
  assert.equal(isDark({ furo: "dark", system: false }), true);
  assert.equal(isDark({ furo: "light", system: true }), false);
  assert.equal(isDark({ furo: "auto", system: true }), true);
  assert.equal(isDark({ system: true }), true);
});
