// The code pane: the lines of a text.

import assert from "node:assert/strict";
import { test } from "node:test";

import { splitLines } from "../../hookviz/player/browser/panel/code_pane.js";

test("blank lines at the end are left out, those between stay", () => {
  assert.deepEqual(splitLines("a = 1\n\nb = a\n\n  \n"), ["a = 1", "", "b = a"]);
  assert.deepEqual(splitLines("  indented"), ["  indented"]);
});
