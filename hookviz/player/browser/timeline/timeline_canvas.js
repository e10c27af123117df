// Draws a long timeline: bars for norms, the signs of hooks, and where passes begin.

import { colourAt, positionOnScale } from "../common/norm_scale.js";

/** @import { Column, PassMark } from "./timeline_columns.js" */
/** @import { Scale } from "../common/types" */

const [BARS_HEIGHT, BARS_FLOOR] = [50, 34];
/** Where the signs of the hooks are, the radius of their circles, and the least distance of two circles, in pixels. */
const [SIGNS_AT, SIGN_RADIUS, SIGN_SPACE] = [42.5, 4, 5];
/** The height of the row with the titles of passes, as a multiple of its letters. */
const LANE_RATIO = 1.35;
const COLOUR_NAMES = ["purple", "hook", "side", "red", "quiet", "ink", "line", "small-tone", "middle-tone", "large-tone"];

/** @typedef {{ pen: CanvasRenderingContext2D, width: number, height: number, lane: number, colours: { [name: string]: string } }} Canvas */

/**
 * Prepares a canvas, and reads the colours of the theme.
 * @param {HTMLCanvasElement} canvas
 * @param {Element} root
 * @param {number} width
 * @param {boolean} hasPasses whether a row for passes is below the bars
 * @returns {Canvas}
 */
export function openCanvas(canvas, root, width, hasPasses) {
  const [ratio, style, { fontSize }] = [globalThis.devicePixelRatio || 1, getComputedStyle(root), getComputedStyle(canvas)];
  const lane = Math.round(parseFloat(fontSize) * LANE_RATIO);
  const height = BARS_HEIGHT + (hasPasses ? lane : 0);
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("The browser draws on no canvas.");
  pen.scale(ratio, ratio);
  Object.assign(pen, { font: `${fontSize} ${style.fontFamily}`, textBaseline: "middle" });
  const colours = Object.fromEntries(COLOUR_NAMES.map((name) => [name, style.getPropertyValue(`--hv-${name}`)]));
  return { pen, width, height, lane, colours };
}

/**
 * Draws a bar for each column, opaque between its smallest and largest norm, and below it a mark for hooks. A column
 * with NaN or Inf is a dashed bar of full height.
 * @param {Canvas} canvas
 * @param {Column[]} columns
 * @param {Scale | null} scale
 * @param {boolean} isColored
 */
export function drawColumns({ pen, width, colours }, columns, scale, isColored) {
  const step = width / columns.length;
  columns.forEach((column, i) => {
    /**
     * @param {string} colour
     * @param {number} top
     * @param {number} bottom
     */
    const fill = (colour, top, bottom) => {
      pen.fillStyle = colour;
      pen.fillRect(i * step, top, barWidth(step), bottom - top);
    };
    if (scale && column.high >= column.low) drawNorms(pen, fill, column, scale, isColored ? colours : null, colours.purple);
    if (column.zero) fill(colours.quiet, BARS_FLOOR - 1, BARS_FLOOR + 1);
    if (column.bad) {
      pen.clearRect(i * step, 0, barWidth(step), BARS_HEIGHT);
      // Dashed, so that it differs from other bars by more than its colour.
      for (let top = 0; top < BARS_HEIGHT; top += 6) fill(colours.red, top, Math.min(top + 4, BARS_HEIGHT));
    }
  });
}

/**
 * Draws the signs of the hooks below the bars: hollow circles, and over them filled diamonds.
 * @param {Canvas} canvas
 * @param {Column[]} columns
 */
export function drawSigns({ pen, width, colours }, columns) {
  const step = width / columns.length;
  const edge = SIGN_RADIUS + 2.5;
  /** @param {number} i */
  const place = (i) => Math.min(Math.max((i + 0.5) * step, edge), width - edge);
  /** @param {string} kind */
  const placesOf = (kind) => columns.flatMap(({ signs }, i) => (signs.has(kind) ? [place(i)] : []));
  Object.assign(pen, { fillStyle: colours.side, strokeStyle: colours.hook, lineWidth: 2 });
  let last = -Infinity;
  for (const [kind, corners] of /** @type {[string, number][]} */ ([["looked", 32], ["open", 6]])) {
    for (const x of placesOf(kind)) {
      if (x - last < SIGN_SPACE && kind === "looked") continue;
      last = x;
      drawPolygon(pen, x, SIGN_RADIUS, corners);
      pen.fill();
      pen.stroke();
    }
  }
  pen.fillStyle = colours.hook;
  for (const x of placesOf("changed")) {
    drawPolygon(pen, x, edge, 4);
    pen.fill();
  }
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x
 * @param {number} radius
 * @param {number} corners
 */
function drawPolygon(pen, x, radius, corners) {
  pen.beginPath();
  for (let corner = 0; corner < corners; corner += 1) {
    const angle = (2 * Math.PI * corner) / corners;
    pen.lineTo(x + radius * Math.cos(angle), SIGNS_AT + radius * Math.sin(angle));
  }
  pen.closePath();
}

/**
 * Returns the width of a bar in pixels, with a gap if there is room.
 * @param {number} step
 */
const barWidth = (step) => Math.max(1, step - (step > 3 ? 1 : 0));

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {(colour: string, top: number, bottom: number) => void} fill
 * @param {Column} column
 * @param {Scale} scale
 * @param {{ [name: string]: string } | null} colours the colours of the scale, if norms are coloured
 * @param {string} plain
 */
function drawNorms(pen, fill, { low, high }, scale, colours, plain) {
  const [first, last] = [low, high].map((norm) => positionOnScale(norm, scale));
  const shade = colours ? resolveVariables(colourAt(last, "tone"), colours) : plain;
  pen.globalAlpha = 0.35;
  fill(shade, BARS_FLOOR - 4 - last * (BARS_FLOOR - 8), BARS_FLOOR);
  pen.globalAlpha = 1;
  fill(shade, BARS_FLOOR - 4 - last * (BARS_FLOOR - 8), BARS_FLOOR - first * (BARS_FLOOR - 8));
}

/**
 * Replaces CSS variables, which a canvas does not resolve.
 * @param {string} text
 * @param {{ [name: string]: string }} colours
 */
const resolveVariables = (text, colours) => text.replace(/var\(--hv-([\w-]+)\)/g, (_, name) => colours[name]);

/**
 * Draws a line where each pass begins, through the bars and a row at the bottom that has the titles for which there is room.
 * @param {Canvas} canvas
 * @param {PassMark[]} marks
 * @param {(view: number) => string} titleOf
 */
export function drawPasses({ pen, lane, colours }, marks, titleOf) {
  pen.fillStyle = colours.line;
  for (const { left, isTitled } of marks) pen.fillRect(left, 0, 1, isTitled ? BARS_HEIGHT + lane : BARS_HEIGHT);
  pen.fillStyle = colours.ink;
  for (const { view, left, isTitled } of marks) if (isTitled) pen.fillText(titleOf(view), left + 4, BARS_HEIGHT + lane / 2 + 1);
}
