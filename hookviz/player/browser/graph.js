// A picture: which elements are to come, now and done, and what each text shows by now.

import { strike } from "./variants.js";
import { indexFrames, nextOf, scaleFor, sendingSteps, stateAt, stateIn, textAt, wasUnlike } from "./logic.js";
import { atEnd, gliding, make, mark } from "./dom.js";

export const hasLayers = (model) => Boolean(model.get("layers") && globalThis.DecompressionStream);

export function makePicture(svg, label, frames, { was, pins, struck, index = indexFrames(frames) }) {
  const holder = make("div", "hv-picture");
  holder.innerHTML = svg;
  const picture = holder.querySelector("svg");
  mark(picture, { role: "img", "aria-label": label });
  const elements = takeIds(picture);
  picture.querySelectorAll(".hv-node, .hv-edge, .hv-module, .hv-fold").forEach(addLayers);
  for (const pin of picture.querySelectorAll(".hv-pin")) {
    pin.classList.toggle("hv-switch-pin", pins.placeOf(pin.dataset.id) >= 0);
    pin.classList.toggle("hv-off", pins.isOff(pin.dataset.id));
    const firing = index.steps.get(pin.dataset.id)?.find((step) => frames[step].glyph === "hook");
    if (firing !== undefined) pin.dataset.hook = frames[firing].hook;
  }
  const off = (id) => (id.endsWith("-v") && pins.isOff(id.slice(0, -2)) ? pins.off : undefined);
  const stepAt = (target, now) => {
    const id = namedAt(target, index);
    return id ? nextOf(sendingSteps(frames, index.steps.get(id), id), now) : undefined;
  };
  return { holder, picture, size: sizeOfPicture(picture), elements, stepAt, align: aligner(picture), paint: painter(elements, index, frames, { before: was && indexFrames(was).texts, struck, off }) };
}

/** Ids would clash where a page holds several players. */
function takeIds(picture) {
  const elements = new Map();
  for (const element of picture.querySelectorAll("[id]")) {
    // What is known of a tensor stands behind the name of the fact.
    elements.set(element.id, isFact(element.id) && element.matches("g") ? element.lastElementChild : element);
    element.dataset.id = element.id;
    element.removeAttribute("id");
  }
  return elements;
}

const isFact = (id) => /-[bdf]\d+$/.test(id);

/** The halo, a leaf's second outline and a wide target for the pointer are copies of the outline. */
function addLayers(element) {
  const outline = element.querySelector(":scope > .hv-box, :scope > .hv-line");
  if (!outline) return;
  const copy = (name) => {
    const layer = outline.cloneNode();
    mark(layer, { class: name });
    return layer;
  };
  outline.before(copy("hv-halo"));
  if (element.matches(".hv-leaf")) outline.after(copy("hv-inner"));
  if (element.matches(".hv-edge")) outline.after(copy("hv-target"));
  if (element.matches(".hv-fold")) outline.before(copy("hv-pile"));
}

/** Remembers what is shown and touches only what changes. */
function painter(elements, index, frames, { before, struck, off }) {
  const shown = new Map();
  let near = [];
  const states = [...index.steps].filter(([id]) => elements.has(id));
  // What no step is about never has its turn: it stays faint.
  for (const [id, element] of elements) {
    if (!index.steps.has(id) && element.matches(".hv-node, .hv-edge, .hv-pin, .hv-module")) restate(element, "", "todo");
  }
  const texts = [...elements].filter(([id]) => /-[vgaic]$/.test(id) || isFact(id));
  const spans = [...(index.spans ?? [])].filter(([id]) => elements.has(id));
  const first = new Map(texts.map(([id, element]) => [id, isFact(id) ? element.textContent : ""]));
  return (step) => {
    const show = (id, state) => {
      if (shown.get(id) !== state) restate(elements.get(id), shown.get(id), state);
      shown.set(id, state);
    };
    for (const [id, steps] of states) show(id, stateAt(steps, step));
    for (const [id, rows] of spans) show(id, stateIn(rows, step));
    for (const element of near) element?.classList.remove("hv-near");
    near = frames[step].near.map((id) => elements.get(id));
    for (const element of near) element?.classList.add("hv-near");
    for (const [id, element] of texts) {
      const text = off(id) ?? (textAt(index.texts.get(id) ?? [], step) || first.get(id));
      const was = before ? wasUnlike(textAt(before.get(id) ?? [], step), text) : "";
      if (shown.get(element) !== `${was} ${text}`) write(element, text, was, struck);
      shown.set(element, `${was} ${text}`);
    }
  };
}

/** A text that is another one in the pass beside: that one stands before it, struck through. */
function write(element, text, was, struck) {
  element.textContent = text;
  element.classList.toggle("hv-changed", Boolean(was));
  if (was && struck) strike(element, was, text);
}

function restate(element, old, state) {
  if (old) element.classList.remove(`hv-${old}`);
  element.classList.add(`hv-${state}`);
}

/** The innermost element under the pointer that some step is about. A module's plates lie outside its box. */
function namedAt(target, index) {
  let element = target.closest("[data-id]");
  const name = () => element.dataset.id.replace(/^(m\d+)-[hf]$/, "$1");
  while (element && !index.steps.has(name())) element = element.parentElement.closest("[data-id]");
  return element ? name() : undefined;
}

/** Once it is to be seen, lines up what stands at the right of a label: the layout measured with another font. */
function aligner(picture) {
  const waiting = [...picture.querySelectorAll(".hv-pin, .hv-node")];
  return () => {
    if (!waiting.length || !picture.getBoundingClientRect().width) return;
    for (const element of waiting.splice(0)) alignRight(element);
  };
}

function alignRight(element) {
  const value = element.querySelector(element.matches(".hv-pin") ? ".hv-pin-value" : ".hv-grad");
  const y = element.querySelector("text").getAttribute("y");
  // A gradient that has a row of its own stays where it is.
  if (!value || Math.abs(value.getAttribute("y") - y) > 8) return;
  const { x, width } = element.querySelector(".hv-pin-box, .hv-box").getBBox();
  mark(value, { "text-anchor": "end", x: x + width - 8, y });
}

/** Keeps the pictures at a readable size as the pane changes. */
export function fitPictures(pane, pictures, letters, repaint, signal) {
  const fit = () => {
    const { paddingLeft, maxHeight } = getComputedStyle(pane);
    const sizes = pictures().map((picture) => picture.size);
    const [width, height] = [pane.clientWidth, parseFloat(maxHeight)].map((size) => size - 2 * parseFloat(paddingLeft));
    if (!(width > 0 && height > 0)) return;
    sizes.forEach((size, k) => {
      const scale = scaleFor(size, { width, height, ...letters() });
      pictures()[k].picture.style.width = `${size.width * scale}px`;
      pictures()[k].picture.style.height = `${size.height * scale}px`;
    });
    // What the widest picture leaves free is the panel's.
    const widest = Math.max(...pictures().map(({ picture }) => parseFloat(picture.style.width)));
    pane.parentElement.style.setProperty("--hv-picture", `${widest}px`);
    // A pane that scrolls must be reachable from the keyboard.
    if (overflows(pane)) pane.tabIndex = 0;
    else pane.removeAttribute("tabindex");
    repaint();
  };
  const observer = new ResizeObserver(fit);
  observer.observe(pane);
  atEnd(signal, () => observer.disconnect());
  return fit;
}

function sizeOfPicture(picture) {
  const { width, height } = picture.viewBox.baseVal;
  const sizes = [...picture.querySelectorAll("text")].map((text) => parseFloat(text.getAttribute("font-size")) || 16);
  return { width, height, smallest: Math.min(16, ...sizes) };
}

function overflows(pane) {
  return pane.scrollWidth > pane.clientWidth + 1 || pane.scrollHeight > pane.clientHeight + 1;
}

/** Brings the box of the step into view where the picture is larger than its pane. */
export function follow(pane, box) {
  if (!box || !pane.hasAttribute("tabindex")) return;
  const [inner, outer] = [box.getBoundingClientRect(), pane.getBoundingClientRect()];
  // Its middle; of what is larger than the pane its beginning, where its name stands.
  const by = (start, size) => inner[start] + Math.min(inner[size], outer[size]) / 2 - outer[start] - outer[size] / 2;
  pane.scrollBy({ left: by("left", "width"), top: by("top", "height"), behavior: gliding() });
}
