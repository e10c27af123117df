// Small helpers to make elements. Text is always text: nothing but the picture is ever parsed as markup.

import { isDark } from "./logic.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element that holds text. */
export function make(tag, name = "", text = "", attributes = {}) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text) element.textContent = legible(text);
  mark(element, attributes);
  return element;
}

/** What would turn a line around is shown as �, so that it reads as it was written. */
export const legible = (text) => text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

export function mark(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

/** A small picture that only repeats what words beside it say. */
export function shape(d, name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  mark(svg, { viewBox: "-8 -8 16 16", class: name, "aria-hidden": true });
  mark(path, { d });
  svg.append(path);
  return svg;
}

export function textButton(text, act, signal) {
  const button = make("button", "hv-button", text, { type: "button" });
  listen(button, "click", act, signal);
  return button;
}

/** A button that says which key does the same. */
export function keyed(button, key) {
  mark(button, { "aria-keyshortcuts": key });
  button.append(make("kbd", "", String(key)));
  return button;
}

/** What has the keyboard, also where the page keeps the player in a tree of its own. */
export const focused = (root) => root.getRootNode().activeElement;

/** How to scroll: not gliding for whom motion disturbs. */
export const gliding = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");

/** Listen until the signal ends it. */
export function listen(target, type, act, signal) {
  target.addEventListener(type, act, { signal });
}

/** Tell the page around that the player could not be drawn: what fails later than render reaches nobody else. */
export function fail(root, error) {
  console.error(error);
  root.dispatchEvent(new CustomEvent("hv-failed", { bubbles: true, detail: error }));
}

/** Tidy up in the end. Not through listen: a signal drops its listeners before it tells them. */
export function atEnd(signal, act) {
  signal.addEventListener("abort", act);
}

/** What packed.py has packed. */
export async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** Show the theme of the page around us, now and whenever it changes. */
export function followTheme(root, signal) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const { body, documentElement } = document;
  const paint = () => root.classList.toggle("hv-dark", isDark({
    jupyter: body.dataset.jpThemeLight,
    editor: body.className,
    colab: documentElement.getAttribute("theme"),
    furo: body.dataset.theme,
    system: system.matches,
  }));
  const observer = new MutationObserver(paint);
  observer.observe(body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class", "data-theme"] });
  observer.observe(documentElement, { attributes: true, attributeFilter: ["theme"] });
  listen(system, "change", paint, signal);
  atEnd(signal, () => observer.disconnect());
  paint();
}
