// The row below a picture that is too large to be readable as a whole: what is shown of it, and buttons that change that.

import { SMALLEST_WHOLE } from "./camera.js";
import { addKeyHint, makeElement, makeTextButton, setAttributes } from "./dom.js";

/** @import { Language } from "./language.js" */
/** @import { Viewport } from "./viewport.js" */

/**
 * @param {Viewport} viewport
 * @param {Language} language
 * @param {AbortSignal} signal
 */
export function makePictureTools(viewport, language, signal) {
  const pane = makeElement("div", "hv-tools", "", { role: "group", "aria-label": language.say("player.picture_tools") });
  const toggle = makeTextButton("", () => viewport.toggle(), signal);
  const label = makeElement("span");
  toggle.append(label);
  addKeyHint(toggle, "Z");
  const out = makeTextButton("−", () => viewport.zoom(-1), signal);
  const closer = makeTextButton("+", () => viewport.zoom(1), signal);
  nameButton(out, language.say("player.zoom_out"));
  nameButton(closer, language.say("player.zoom_in"));
  const note = makeElement("p");
  pane.append(toggle, out, closer, note);
  const paint = () => {
    if (pane.hidden === viewport.isTooLarge) pane.hidden = !viewport.isTooLarge;
    setText(label, language.say(viewport.showsWhole ? "player.readable" : "player.whole"));
    setText(note, pane.hidden ? "" : language.say(noteKey(viewport)));
  };
  return { pane, paint };
}

/**
 * @param {Element} element
 * @param {string} text
 */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * @param {Element} button
 * @param {string} label
 */
const nameButton = (button, label) => setAttributes(button, { "aria-label": label, title: label });

/** @param {Viewport} viewport */
function noteKey({ isWhole, letters }) {
  if (!isWhole) return "player.picture_part";
  return letters < SMALLEST_WHOLE ? "player.picture_small" : "player.picture_whole";
}
