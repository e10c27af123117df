// Whether the browser can show Chinese: without a font, every character is the same empty box.

import { makeElement } from "../common/dom.js";

/** In English, since it is for those who see boxes instead of Chinese. */
const NO_GLYPHS =
  "This computer has no font with Chinese characters, so they show as boxes. Install one, such as Noto Sans CJK.";
const SIZE = 24;

/**
 * Draws a character, and returns its pixels as a text.
 * @param {string} char
 */
function drawCharacter(char) {
  const canvas = makeElement("canvas", "", "", { width: SIZE, height: SIZE });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) return char;
  context.font = `${SIZE - 4}px sans-serif`;
  context.fillText(char, 2, SIZE - 4);
  return context.getImageData(0, 0, SIZE, SIZE).data.join();
}

/**
 * Says above the player that a font is missing, if the language needs one.
 * @param {HTMLElement} root
 * @param {string} language
 */
export function warnAboutMissingGlyphs(root, language) {
  if (language !== "zh" || drawCharacter("钩") !== drawCharacter("梯")) return;
  root.prepend(makeElement("p", "hv-no-glyphs", NO_GLYPHS, { lang: "en" }));
}
