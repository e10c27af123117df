// A small map beside a picture that the user zoomed, with the part that is visible; and a lens, which enlarges the step's box.

import { NARROW, visiblePart } from "./camera.js";
import { makeElement, makeSvgElement, setAttributes } from "../common/dom.js";

/** @import { Rect } from "./camera.js" */
/** @import { Picture } from "./picture.js" */
/** @import { Viewport } from "./viewport.js" */

/** The largest width and height of the map. */
const MAP_SIZE = { width: 150, height: 64 };

/**
 * Makes the map. A press on it goes there.
 * @param {Viewport} viewport
 */
export function makeMinimap(viewport) {
  const pane = makeSvgElement("svg", "hv-map", { "aria-hidden": true, preserveAspectRatio: "none" });
  const [boxes, step, frame] = ["hv-map-boxes", "hv-map-step", "hv-map-frame"].map((name) => makeSvgElement("path", name));
  pane.append(boxes, step, frame);
  /** @type {Picture | null} */
  let drawn = null;
  /** @param {Picture} picture */
  const draw = (picture) => {
    drawn = picture;
    setAttributes(pane, { viewBox: `0 0 ${picture.size.width} ${picture.size.height}` });
    setAttributes(boxes, { d: picture.boxes.map(outline).join("") });
  };
  const paint = () => {
    const { picture, size, camera } = viewport;
    const isNeeded = viewport.isZoomed;
    if (pane.hasAttribute("hidden") === isNeeded) pane.toggleAttribute("hidden", !isNeeded);
    if (!picture || !isNeeded) return;
    if (picture !== drawn) draw(picture);
    const scale = mapScale(picture.size);
    setAttributes(pane, { width: picture.size.width * scale, height: picture.size.height * scale });
    setAttributes(frame, { d: outline(visiblePart(camera, picture.size, size)) });
    const rect = picture.currentRect;
    setAttributes(step, { d: rect ? outline(rect) : "" });
    step.classList.toggle("hv-around", surrounds(rect, picture));
  };
  /** @param {PointerEvent} event */
  const go = (event) => {
    const { picture, size, camera } = viewport;
    if (!picture || !event.buttons) return;
    event.stopPropagation();
    const { left, top, width, height } = pane.getBoundingClientRect();
    const [across, down] = [(event.clientX - left) / width, (event.clientY - top) / height];
    const x = size.width / 2 - across * picture.size.width * camera.scale;
    const y = size.height / 2 - down * picture.size.height * camera.scale;
    viewport.move(x - camera.x, y - camera.y);
  };
  pane.addEventListener("pointerdown", go);
  pane.addEventListener("pointermove", go);
  return { pane, paint };
}

/**
 * Makes the lens. It is visible if the letters of a whole picture are too small.
 * @param {Viewport} viewport
 */
export function makeLens(viewport) {
  const pane = makeElement("div", "hv-lens hv-art", "", { "aria-hidden": true, hidden: true });
  const paint = () => {
    const { picture } = viewport;
    const box = findUnreadable(viewport);
    const rect = box ? picture?.rectOf(box) : null;
    const isNeeded = Boolean(picture && box && rect && !surrounds(rect, picture));
    if (pane.hidden === isNeeded) pane.hidden = !isNeeded;
    if (!isNeeded || !picture || !box || !rect) return;
    pane.replaceChildren(enlarge(box, rect, picture, viewport));
    pane.classList.toggle("hv-at-start", liesAtEnd(rect, viewport));
  };
  return { pane, paint };
}

/**
 * Returns the box of the step if its letters are too small; null for a sign without letters.
 * @param {Viewport} viewport
 */
function findUnreadable({ picture, letters, smallestWhole }) {
  const box = letters < smallestWhole ? picture?.shown : null;
  return box?.textContent?.trim() ? box : null;
}

/**
 * Returns a copy of a box with readable letters, as large as the pane has room for.
 * @param {Element} box
 * @param {Rect} rect
 * @param {Picture} picture
 * @param {Viewport} viewport
 */
function enlarge(box, rect, picture, { size, readable }) {
  const room = 8;
  const [width, height] = [rect.width + 2 * room, Math.min(rect.height, (size.height * 0.45)) + 2 * room];
  const scale = Math.min((readable + 1) / picture.size.smallest, (size.width * (size.width < NARROW ? 0.9 : 0.45)) / width);
  const svg = makeSvgElement("svg", "hv-svg", {
    viewBox: `${rect.x - room} ${rect.y - room} ${width} ${height}`, width: width * scale, height: height * scale,
  });
  const copy = /** @type {Element} */ (box.cloneNode(true));
  for (const part of [copy, ...copy.querySelectorAll("[tabindex]")]) part.removeAttribute("tabindex");
  const ground = makeSvgElement("g", "", { transform: picture.origin });
  ground.append(copy);
  svg.append(ground);
  return svg;
}

/**
 * Returns whether a part of the picture lies in the right half of the pane: what covers the picture goes to the left.
 * @param {Rect | null} rect
 * @param {Viewport} viewport
 */
function liesAtEnd(rect, { camera, size }) {
  return rect !== null && camera.x + (rect.x + rect.width / 2) * camera.scale > size.width / 2;
}

/**
 * Returns whether a box is the frame around most of the picture, such as that of the whole network: filled, it would hide the map.
 * @param {Rect | null} rect
 * @param {Picture} picture
 */
function surrounds(rect, { size }) {
  return rect !== null && rect.width * rect.height > size.width * size.height / 2;
}

/**
 * Returns the scale of the map.
 * @param {{ width: number, height: number }} picture
 */
const mapScale = ({ width, height }) => Math.min(MAP_SIZE.width / width, MAP_SIZE.height / height);

/** @param {Rect} rect */
const outline = ({ x, y, width, height }) => `M${x},${y}h${width}v${height}h${-width}z`;
