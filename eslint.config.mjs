import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["hookviz/static/", "build/", "tools/deck/", ".venv*/", "site/"] },
  js.configs.recommended,
  {
    rules: {
      complexity: ["error", 14],
      eqeqeq: "error",
      "max-depth": ["error", 3],
      "max-len": ["error", { code: 140 }],
      "max-lines": ["error", 500],
      "max-lines-per-function": ["error", 60],
      "no-console": ["error", { allow: ["error"] }],
      "no-shadow": "error",
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  { files: ["hookviz/player/browser/**/*.js"], languageOptions: { globals: globals.browser } },
  {
    // Each is one function that Playwright runs in a page.
    files: ["tests/browser/*.js", "benchmarks/*.js"],
    languageOptions: { globals: globals.browser },
    rules: { "max-lines-per-function": "off", "no-unused-expressions": "off" },
  },
  { files: ["tests/js/*.js"], languageOptions: { globals: globals.node } },
];
