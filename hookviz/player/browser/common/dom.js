// Small helpers to make elements. Only pictures are parsed as markup: all other text is set as text.

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {{ [name: string]: string | number | boolean }} Attributes */

/**
 * Makes an element that holds text.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [name] its classes
 * @param {string} [text]
 * @param {Attributes} [attributes]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function makeElement(tag, name = "", text = "", attributes = {}) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text) element.textContent = escapeBidi(text);
  setAttributes(element, attributes);
  return element;
}

/**
 * Replaces bidirectional control characters by �: they could make source code read differently from what it does.
 * @param {string} text
 */
export const escapeBidi = (text) => text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/**
 * Splits a text where a long name such as net.encoder.layers.0.weight or ConvolutionBackward0 may end a line: after a
 * dot, or before a capital letter. A number stays whole.
 * @param {string} text
 */
export const splitNames = (text) => text.split(/(?<=[^\S\u00A0])/).flatMap((word) => {
  return word.length > LONGEST_WHOLE ? word.split(/(?<=\D\.)|(?<=\.)(?=[a-z_])|(?<=[a-z0-9])(?=[A-Z])/) : [word];
});

/** The letters of a word that is never split. */
const LONGEST_WHOLE = 18;

/**
 * Appends a text whose names may end a line at their seams.
 * @param {Element} element
 * @param {string} text
 */
export function appendNames(element, text) {
  splitNames(escapeBidi(text)).forEach((part, i) => element.append(...(i ? [makeElement("wbr")] : []), part));
}

/**
 * Sets attributes.
 * @param {Element} element
 * @param {Attributes} attributes
 */
export function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

/**
 * Makes an SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [name] its classes
 * @param {Attributes} [attributes]
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function makeSvgElement(tag, name = "", attributes = {}) {
  const element = document.createElementNS(SVG, tag);
  setAttributes(element, name ? { class: name, ...attributes } : attributes);
  return element;
}

/**
 * Makes an icon. Screen readers skip it, since the text next to it says the same.
 * @param {string} d its path
 * @param {string} name its classes
 */
export function makeShape(d, name) {
  const svg = makeSvgElement("svg", name, { viewBox: "-8 -8 16 16", "aria-hidden": true });
  svg.append(makeSvgElement("path", "", { d }));
  return svg;
}

/**
 * @param {string} text
 * @param {(event: Event) => void} act
 * @param {AbortSignal} signal
 */
export function makeTextButton(text, act, signal) {
  const button = makeElement("button", "hv-button", text, { type: "button" });
  listen(button, "click", act, signal);
  return button;
}

/**
 * Adds the key that does the same to a button.
 * @template {HTMLElement} Element
 * @param {Element} button
 * @param {string | number} key
 */
export function addKeyHint(button, key) {
  setAttributes(button, { "aria-keyshortcuts": key });
  button.append(makeElement("kbd", "", String(key)));
  return button;
}

/**
 * Returns the element that a selector finds; throws if there is none.
 * @param {ParentNode} parent
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function findElement(parent, selector) {
  const element = parent.querySelector(selector);
  if (!element) throw new Error(`There is no ${selector}.`);
  return /** @type {HTMLElement} */ (element);
}

/**
 * Returns the closest ancestor of an event's target that matches a selector.
 * @param {Event} event
 * @param {string} selector
 */
export function closestTarget(event, selector) {
  return event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest(selector)) : null;
}

/**
 * Returns the focused element, also if the player is in a shadow tree.
 * @param {Element} root
 * @returns {HTMLElement | null}
 */
export function focusedElement(root) {
  const tree = root.getRootNode();
  if (!(tree instanceof Document || tree instanceof ShadowRoot)) return null;
  return /** @type {HTMLElement | null} */ (tree.activeElement);
}

/**
 * Returns how to scroll: without animation if the user prefers reduced motion.
 * @returns {ScrollBehavior}
 */
export const scrollBehavior = () => (prefersReducedMotion() ? "auto" : "smooth");

/** Returns whether the user prefers that nothing moves. */
export const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Listens to an event until the signal aborts.
 * @param {EventTarget} target
 * @param {string} type
 * @param {(event: any) => void} act
 * @param {AbortSignal} signal
 */
export function listen(target, type, act, signal) {
  target.addEventListener(type, act, { signal });
}

/**
 * Cleans up when the signal aborts. Not through `listen`, whose listeners the signal removes before they run.
 * @param {AbortSignal} signal
 * @param {() => void} act
 */
export function onAbort(signal, act) {
  signal.addEventListener("abort", act);
}

/**
 * Tells the page that the player failed. An error after `render` has returned would not reach the page otherwise.
 * @param {Element} root
 * @param {unknown} error
 */
export function reportFailure(root, error) {
  console.error(error);
  root.dispatchEvent(new CustomEvent("hv-failed", { bubbles: true, detail: error }));
}

/** Returns an id that no other element of the page has. */
export const newId = () => `hv-${Math.random().toString(36).slice(2)}`;
