// The row below a picture that is too large to be readable as a whole: what is shown of it, and buttons that change that.

import { makeMinimap } from "./minimap.js";
import { addKeyHint, makeElement, makeTextButton, setAttributes } from "../common/dom.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Viewport } from "./viewport.js" */

/**
 * @param {Viewport} viewport
 * @param {Say} say
 * @param {AbortSignal} signal
 */
export function makePictureTools(viewport, say, signal) {
  const pane = makeElement("div", "hv-tools", "", { role: "group", "aria-label": say("picture_tools") });
  const toggle = makeTextButton("", () => viewport.toggle(), signal);
  const label = makeElement("span");
  toggle.append(label);
  addKeyHint(toggle, "Z");
  const out = makeTextButton("−", () => viewport.zoom(-1), signal);
  const closer = makeTextButton("+", () => viewport.zoom(1), signal);
  nameButton(out, say("zoom_out"));
  nameButton(closer, say("zoom_in"));
  const note = makeElement("p");
  const map = makeMinimap(viewport);
  pane.append(toggle, out, closer, note, map.pane);
  const paint = () => {
    const isNeeded = viewport.isTooLarge || viewport.isZoomed;
    if (pane.hidden === isNeeded) pane.hidden = !isNeeded;
    map.paint();
    setText(label, say(viewport.showsWhole ? "readable" : "whole"));
    setText(note, pane.hidden ? "" : say(noteKey(viewport)));
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
function noteKey({ isWhole, letters, smallestWhole }) {
  if (!isWhole) return "picture_part";
  return letters < smallestWhole ? "picture_small" : "picture_whole";
}
