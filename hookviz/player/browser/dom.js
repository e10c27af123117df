// Small helpers to make elements. Text is always text: nothing but the picture is ever parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {{ [name: string]: string | number | boolean }} Attributes */

/**
 * An element that holds text.
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
 * Characters that would turn a line around are shown as �, so that it reads as it was written.
 * @param {string} text
 */
export const escapeBidi = (text) => text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/**
 * Sets attributes.
 * @param {Element} element
 * @param {Attributes} attributes
 */
export function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

/**
 * A small picture that only repeats what the words beside it say.
 * @param {string} d its path
 * @param {string} name its classes
 */
export function makeShape(d, name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  setAttributes(svg, { viewBox: "-8 -8 16 16", class: name, "aria-hidden": true });
  setAttributes(path, { d });
  svg.append(path);
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
 * A button that says which key does the same.
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
 * The element that a selector finds, which must be there.
 * @param {ParentNode} parent
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function findElement(parent, selector) {
  const found = parent.querySelector(selector);
  if (!found) throw new Error(`There is no ${selector}.`);
  return /** @type {HTMLElement} */ (found);
}

/**
 * The nearest element of a selector around the target of an event.
 * @param {Event} event
 * @param {string} selector
 */
export function closestTarget(event, selector) {
  return event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest(selector)) : null;
}

/**
 * The element that has the keyboard, also where the page keeps the player in a tree of its own.
 * @param {Element} root
 * @returns {HTMLElement | null}
 */
export function focusedElement(root) {
  const tree = root.getRootNode();
  if (!(tree instanceof Document || tree instanceof ShadowRoot)) return null;
  return /** @type {HTMLElement | null} */ (tree.activeElement);
}

/**
 * How to scroll: not gliding where motion disturbs.
 * @returns {ScrollBehavior}
 */
export const scrollBehavior = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");

/**
 * Listens until the signal ends it.
 * @param {EventTarget} target
 * @param {string} type
 * @param {(event: any) => void} act
 * @param {AbortSignal} signal
 */
export function listen(target, type, act, signal) {
  target.addEventListener(type, act, { signal });
}

/**
 * Tidies up in the end. Not through listen: a signal drops its listeners before it tells them.
 * @param {AbortSignal} signal
 * @param {() => void} act
 */
export function onAbort(signal, act) {
  signal.addEventListener("abort", act);
}

/**
 * Tells the page around that the player could not be drawn: what fails later than render reaches nobody else.
 * @param {Element} root
 * @param {unknown} error
 */
export function reportFailure(root, error) {
  console.error(error);
  root.dispatchEvent(new CustomEvent("hv-failed", { bubbles: true, detail: error }));
}

/** An id that no other element of the page has. */
export const newId = () => `hv-${Math.random().toString(36).slice(2)}`;
