// Numbers that differ after another run is shown roll: the old one leaves upwards, and the new one comes from below.

import { makeElement } from "../common/dom.js";
import { MotionLayer, isMotionWanted, makeMotionText } from "./motion.js";

/** @import { Picture } from "./picture.js" */
/** @import { Model } from "../common/types" */

/** @typedef {{ step: number, pictures: Map<string, string>[], values: string[] }} Memory the texts that a player showed */

/** Milliseconds at the speed 1×. */
const ROLL = 200;
const EASING = "ease-in-out";
const VALUES = ".hv-value, .hv-change";
/** What each player showed before it was rebuilt. @type {WeakMap<Element, Memory>} */
const memories = new WeakMap();
/** @type {{ [anchor: string]: string }} */
const ALIGNMENTS = { end: "flex-end", middle: "center" };

/**
 * Keeps the texts of a player that is about to be rebuilt, if it is in sight.
 * @param {HTMLElement} root
 * @param {Model} model
 */
export function rememberNumbers(root, model) {
  const { top, bottom } = root.getBoundingClientRect();
  memories.delete(root);
  if (!isMotionWanted() || bottom < 0 || top > innerHeight) return;
  const pictures = listPanes(root).map(readTexts);
  const values = [...root.querySelectorAll(VALUES)].map((value) => value.textContent ?? "");
  memories.set(root, { step: model.get("step"), pictures, values });
}

/**
 * Lists the panes of pictures: first that of the run that is shown, then that of its baseline.
 * @param {HTMLElement} root
 */
const listPanes = (root) => [...root.querySelectorAll(".hv-graph")].reverse();

/** @param {Element} pane */
function readTexts(pane) {
  const texts = [...pane.querySelectorAll("text[data-id]")];
  return new Map(texts.map((text) => [text.getAttribute("data-id") ?? "", newText(text)]));
}

/**
 * Returns a text without what is struck through.
 * @param {Element} text
 */
function newText(text) {
  const nodes = [...text.childNodes].filter((node) => !(node instanceof Element && node.matches(".hv-was")));
  return nodes.map((node) => node.textContent).join("").replace(/\s+/g, " ");
}

/**
 * Rolls the values of a player that was rebuilt.
 * @param {HTMLElement} root
 * @param {Model} model
 */
export function rollValues(root, model) {
  const memory = memories.get(root);
  const values = [...root.querySelectorAll(VALUES)];
  if (!memory || memory.step !== model.get("step") || memory.values.length !== values.length) return;
  const changed = values.filter((value, i) => value.textContent !== memory.values[i]);
  const frames = [{ transform: "translateY(.6em)" }, { transform: "none" }];
  for (const value of changed) value.animate(frames, { duration: duration(model), easing: EASING });
}

/** @param {Model} model */
const duration = (model) => ROLL / (model.get("speed") || 1);

/**
 * Rolls the texts of a picture that is shown for the first time since its player was rebuilt; returns null if none differs.
 * @param {HTMLElement} root
 * @param {Model} model
 * @param {Picture} picture
 */
export function rollPicture(root, model, picture) {
  const index = listPanes(root).findIndex((pane) => pane.contains(picture.holder));
  const memory = memories.get(root);
  const before = memory?.pictures[index];
  if (!before || memory?.step !== model.get("step")) return null;
  delete memory.pictures[index];
  const texts = [...picture.elements].filter(([id, text]) => before.has(id) && before.get(id) !== newText(text));
  if (!texts.length) return null;
  const layer = new MotionLayer(picture, picture.svg.clientWidth / picture.size.width);
  for (const [id, text] of texts) rollText(layer, text, before.get(id) ?? "", duration(model));
  layer.hide(texts.map(([, text]) => text));
  return layer;
}

/**
 * @param {MotionLayer} layer
 * @param {Element} text
 * @param {string} old
 * @param {number} milliseconds
 */
function rollText(layer, text, old, milliseconds) {
  const [x, y, size] = ["x", "y", "font-size"].map((name) => Number(text.getAttribute(name)));
  const { fill, fontFamily, fontWeight } = getComputedStyle(text);
  const justifyContent = ALIGNMENTS[text.getAttribute("text-anchor") ?? ""] ?? "flex-start";
  /** @type {[Element[], number, number][]} */
  const both = [[[makeMotionText("span", old)], 0, -1], [copyNodes(text), 1, 0]];
  for (const [nodes, from, to] of both) {
    const rolling = makeElement("div", "hv-rolling");
    rolling.append(...nodes);
    Object.assign(rolling.style, { color: fill, fontFamily, fontWeight, fontSize: `${size}px`, justifyContent });
    layer.ground.append(rolling);
    const frames = [from, to].map((at) => ({ transform: `translate(${x}px, ${y + (at - 0.35) * size}px)`, opacity: at ? 0 : 1 }));
    layer.animations.push(rolling.animate(frames, { duration: milliseconds, easing: EASING }));
  }
}

/**
 * Returns copies of what a text consists of; what is struck through stays so.
 * @param {Element} text
 */
function copyNodes(text) {
  return [...text.childNodes].map((node) => makeMotionText(node instanceof Element ? "s" : "span", node.textContent ?? ""));
}
