// The light or dark theme.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isDark } from "../../hookviz/player/browser/host/theme.js";

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
