// The picture of the step as a document of its own: its styles are written into the SVG as attributes, so that it looks the same elsewhere.

import { findElement, makeSvgElement, setAttributes } from "../common/dom.js";

/** Property → its initial value, which is not written. @type {{ [property: string]: string }} */
const PROPERTIES = {
  fill: "",
  stroke: "none",
  "stroke-width": "1px",
  "stroke-dasharray": "none",
  "paint-order": "normal",
  opacity: "1",
  transform: "none",
  "font-family": "",
  "font-size": "",
  "font-weight": "400",
  "text-decoration": "none",
};
/** Properties of text alone. */
const TEXT_PROPERTIES = ["font-family", "font-size", "font-weight", "text-decoration"];
/** Room around the picture for the halos, in the picture's units. */
const MARGIN = 12;
/** The height of the caption above a picture that is joined with another one, in the picture's units. */
const CAPTION = 24;
/** Pixels of a PNG per unit of the picture. */
const PNG_SCALE = 2;

/** @typedef {{ element: SVGSVGElement, markup: string, width: number, height: number }} ExportedSvg */

/**
 * Returns the pictures of a player: one, or in a split view the baseline's and that of the run.
 * @param {HTMLElement} root
 * @returns {ExportedSvg[]}
 */
export const exportPictures = (root) => [...root.querySelectorAll(".hv-graph .hv-svg")].map((shown) => exportSvg(root, shown));

/**
 * @param {HTMLElement} root
 * @param {Element} shown
 * @returns {ExportedSvg}
 */
function exportSvg(root, shown) {
  const copy = /** @type {SVGSVGElement} */ (shown.cloneNode(true));
  const originals = [...shown.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((element, i) => writeStyles(element, getComputedStyle(originals[i])));
  const [x, y, width, height] = (shown.getAttribute("viewBox") ?? "0 0 1 1").split(/[\s,]+/).map(Number);
  const size = { width: width + 2 * MARGIN, height: height + 2 * MARGIN };
  const corner = { x: x - MARGIN, y: y - MARGIN };
  for (const name of [...copy.getAttributeNames()]) if (!["font-family", "role", "aria-label"].includes(name)) copy.removeAttribute(name);
  return finish(root, copy, { ...corner, ...size });
}

/**
 * Puts a background behind a picture, and writes the picture as text.
 * @param {HTMLElement} root
 * @param {SVGSVGElement} element
 * @param {{ x: number, y: number, width: number, height: number }} area
 * @returns {ExportedSvg}
 */
function finish(root, element, { x, y, width, height }) {
  setAttributes(element, { width, height, viewBox: `${x} ${y} ${width} ${height}` });
  element.prepend(makeSvgElement("rect", "", { x, y, width, height, fill: colorOf(root, "--hv-paper", "white") }));
  return { element, markup: new XMLSerializer().serializeToString(element), width, height };
}

/**
 * @param {HTMLElement} root
 * @param {string} name of a property of the style
 * @param {string} fallback
 */
const colorOf = (root, name, fallback) => getComputedStyle(findElement(root, ".hv-frame")).getPropertyValue(name) || fallback;

/**
 * Puts the pictures of a split view into one, each below its caption.
 * @param {HTMLElement} root
 * @param {ExportedSvg[]} pictures
 * @param {string[]} captions
 * @returns {ExportedSvg}
 */
export function joinPictures(root, pictures, captions) {
  const joined = makeSvgElement("svg", "", { "font-family": "sans-serif" });
  const ink = colorOf(root, "--hv-ink", "black");
  let [width, height] = [0, 0];
  pictures.forEach((picture, i) => {
    const caption = makeSvgElement("text", "", { x: width + MARGIN, y: CAPTION - 8, "font-size": 14, "font-weight": 700, fill: ink });
    caption.textContent = captions[i];
    setAttributes(picture.element, { x: width, y: CAPTION });
    joined.append(caption, picture.element);
    width += picture.width;
    height = Math.max(height, CAPTION + picture.height);
  });
  return finish(root, joined, { x: 0, y: 0, width, height });
}

/**
 * Writes the styles of an element into its copy; hidden elements and those that only catch clicks are removed.
 * @param {Element} element
 * @param {CSSStyleDeclaration} style
 */
function writeStyles(element, style) {
  if (style.display === "none" || style.visibility === "hidden" || element.matches(".hv-target")) {
    element.remove();
    return;
  }
  const isText = element.matches("text, tspan");
  const isGroup = element.matches("g");
  for (const name of ["class", "style"]) element.removeAttribute(name);
  for (const [name, initial] of Object.entries(PROPERTIES)) {
    if (isGroup ? !["opacity", "transform"].includes(name) : !isText && TEXT_PROPERTIES.includes(name)) continue;
    // Computed decorations name their colour, too: "underline 2px rgb(…)".
    const value = name === "text-decoration" ? style.textDecorationLine : style.getPropertyValue(name);
    // As attributes, not as a style: the page's policy forbids those.
    if (value === initial) element.removeAttribute(name);
    else element.setAttribute(name, value);
  }
}

/**
 * Draws an SVG as a PNG.
 * @param {ExportedSvg} svg
 * @returns {Promise<Blob>}
 */
export async function drawPng({ markup, width, height }) {
  const image = new Image();
  // The page's policy allows data addresses for pictures, and no others.
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * PNG_SCALE, height * PNG_SCALE];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => {
    if (blob) resolve(blob);
    else reject(new Error("The picture is too large."));
  }, "image/png"));
}
