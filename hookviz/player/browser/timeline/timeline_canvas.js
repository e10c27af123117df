// Draws a long timeline: bars for norms, and below them rows for kinds of steps or for the boxes of the picture.

import { colourAt, positionOnScale } from "../common/norm_scale.js";
import { SIGNS } from "../panel/signs.js";
import { indexAmong } from "./timeline_window.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Column, PassMark } from "./timeline_window.js" */
/** @import { Band, Scale } from "../common/types" */

const [BARS_HEIGHT, BARS_FLOOR] = [50, 34];
/** Where the signs of the hooks are, the radius of their circles, and the least distance of two circles, in pixels. */
const [SIGNS_AT, SIGN_RADIUS, SIGN_SPACE] = [42.5, 4, 5];
/** The height of a row, as a multiple of its letters. */
const LANE_RATIO = 1.35;
const COLOUR_NAMES = [
  "purple", "hook", "side", "red", "quiet", "sunk", "ink", "paper", "line", "strong-line", "small-tone", "middle-tone", "large-tone",
];

/** @typedef {{ pen: CanvasRenderingContext2D, width: number, height: number, lane: number, colours: { [name: string]: string } }} Canvas */

/**
 * Prepares a canvas with room for `lanes` rows below the bars, and reads the colours of the theme.
 * @param {HTMLCanvasElement} canvas
 * @param {Element} root
 * @param {number} width
 * @param {number} lanes
 * @returns {Canvas}
 */
export function openCanvas(canvas, root, width, lanes) {
  const [ratio, style, { fontSize }] = [globalThis.devicePixelRatio || 1, getComputedStyle(root), getComputedStyle(canvas)];
  const lane = Math.round(parseFloat(fontSize) * LANE_RATIO);
  const height = BARS_HEIGHT + lanes * lane;
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
  const placesOf = (kind) => columns.flatMap(({ kinds }, i) => (kinds.has(kind) ? [place(i)] : []));
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
 * Draws a row for each kind of step, with its name.
 * @param {Canvas} canvas
 * @param {Column[]} columns
 * @param {string[]} kinds
 * @param {Say} say
 */
export function drawKinds({ pen, width, lane, colours }, columns, kinds, say) {
  const step = width / columns.length;
  kinds.forEach((kind, k) => {
    const top = BARS_HEIGHT + k * lane;
    pen.fillStyle = colours.sunk;
    pen.fillRect(0, top + 1, width, lane - 1);
    pen.fillStyle = kindColour(kind, colours);
    columns.forEach(({ kinds: there }, i) => there.has(kind) && pen.fillRect(i * step, top + 4, barWidth(step), lane - 8));
    const name = say(`legend_${kind}`);
    pen.fillStyle = colours.paper;
    pen.fillRect(0, top + 1, pen.measureText(name).width + 8, lane - 2);
    pen.fillStyle = colours.ink;
    pen.fillText(name, 4, top + lane / 2);
  });
}

/**
 * @param {string} kind
 * @param {{ [name: string]: string }} colours
 */
function kindColour(kind, colours) {
  if (kind in SIGNS) return colours.hook;
  return kind === "exception" ? colours.red : colours["strong-line"];
}

/**
 * Draws a line where each pass begins, through the bars and a row at the bottom that has the titles for which there is room.
 * @param {Canvas} canvas
 * @param {number} row
 * @param {PassMark[]} marks
 * @param {(picture: number) => string} titleOf
 */
export function drawPasses({ pen, lane, colours }, row, marks, titleOf) {
  const top = BARS_HEIGHT + row * lane;
  pen.fillStyle = colours.line;
  for (const { left, isTitled } of marks) pen.fillRect(left, 0, 1, isTitled ? top + lane : BARS_HEIGHT);
  pen.fillStyle = colours.ink;
  for (const { picture, left, isTitled } of marks) if (isTitled) pen.fillText(titleOf(picture), left + 4, top + lane / 2 + 1);
}

/**
 * Draws the boxes of the picture at their steps, with their names if there is room.
 * @param {Canvas} canvas
 * @param {Band[]} bands
 * @param {number[]} chosen
 */
export function drawBands({ pen, width, lane, colours }, bands, chosen) {
  const end = chosen.at(-1) ?? -1;
  /** @param {number} step */
  const xOf = (step) => (indexAmong(chosen, step) / chosen.length) * width;
  for (const { title, spans } of bands) {
    for (const [first, last] of spans.filter(([from, to]) => to >= chosen[0] && from <= end)) {
      const [left, right] = [xOf(Math.max(first, chosen[0])), last >= end ? width : xOf(last + 1)];
      pen.fillStyle = colours.sunk;
      pen.fillRect(left, BARS_HEIGHT + 1, Math.max(1, right - left), lane - 1);
      pen.fillStyle = colours["strong-line"];
      pen.fillRect(left, BARS_HEIGHT + 1, 1, lane - 1);
      pen.fillStyle = colours.ink;
      if (pen.measureText(title).width + 8 < right - left) pen.fillText(title, left + 4, BARS_HEIGHT + lane / 2 + 1);
    }
  }
}
