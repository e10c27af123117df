// What is drawn of a long timeline: bars for norms, and below them rows for kinds or the boxes of the picture.

import { say } from "./logic.js";
import { colourAt, placeOf } from "./norms.js";
import { placeAmong } from "./zoom.js";

const [BARS, FLOOR, LANE] = [44, 34, 17];
const NAMES = ["purple", "hook", "red", "quiet", "sunk", "ink", "paper", "strong-line", "small-tone", "middle-tone", "large-tone"];

/** A canvas with room for so many rows below the bars, and the colours of the theme. */
export function penOn(canvas, root, width, lanes) {
  const [ratio, height, style] = [globalThis.devicePixelRatio || 1, BARS + lanes * LANE, getComputedStyle(root)];
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  Object.assign(pen, { font: `12px ${style.fontFamily}`, textBaseline: "middle" });
  return { pen, width, colour: Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--hv-${name}`)])) };
}

/** Bars for norms, full from the smallest in a column to the largest; below them hooks; the whole height where a number is none. */
export function drawColumns({ pen, colour, step }, columns, scale, colored) {
  columns.forEach(({ low, high, glyphs, bad, zero }, i) => {
    const bar = Math.max(1, step - (step > 3 ? 1 : 0));
    const fill = (name, top, bottom) => {
      pen.fillStyle = name;
      pen.fillRect(i * step, top, bar, bottom - top);
    };
    if (high >= low) {
      const [first, last] = [low, high].map((norm) => placeOf(norm, scale));
      const shade = colored ? mixed(colourAt(last, "tone"), colour) : colour.purple;
      const top = FLOOR - 4 - last * (FLOOR - 8);
      pen.globalAlpha = 0.35;
      fill(shade, top, FLOOR);
      pen.globalAlpha = 1;
      fill(shade, top, FLOOR - first * (FLOOR - 8));
    }
    if (zero) fill(colour.quiet, FLOOR - 1, FLOOR + 1);
    if (glyphs.has("hook")) fill(colour.hook, FLOOR + 3, BARS);
    if (bad) drawBad(fill, () => pen.clearRect(i * step, 0, bar, BARS), colour.red);
  });
}

/** From top to bottom in pieces, so that it is told from any other bar without its colour. */
function drawBad(fill, clear, colour) {
  clear();
  for (let top = 0; top < BARS; top += 6) fill(colour, top, Math.min(top + 4, BARS));
}

/** A canvas knows no variables. */
const mixed = (text, colour) => text.replace(/var\(--hv-([\w-]+)\)/g, (_, name) => colour[name]);

/** A row for each kind of step, with its name. */
export function drawLanes({ pen, width, colour, step }, columns, lanes, words) {
  lanes.forEach((glyph, k) => {
    const top = BARS + k * LANE;
    pen.fillStyle = colour.sunk;
    pen.fillRect(0, top + 1, width, LANE - 1);
    pen.fillStyle = colour[{ hook: "hook", exception: "red" }[glyph] ?? "strong-line"];
    columns.forEach(({ glyphs }, i) => glyphs.has(glyph) && pen.fillRect(i * step, top + 4, Math.max(1, step - (step > 3 ? 1 : 0)), LANE - 8));
    const name = say(words, `legend_${glyph}`);
    pen.fillStyle = colour.paper;
    pen.fillRect(0, top + 1, pen.measureText(name).width + 8, LANE - 2);
    pen.fillStyle = colour.ink;
    pen.fillText(name, 4, top + LANE / 2);
  });
}

/** The boxes of the picture above, each where its steps are; its name where there is room. */
export function drawBands({ pen, width, colour }, bands, chosen) {
  const place = (step) => ((placeAmong(chosen, step) / chosen.length) * width);
  bands.forEach(({ title, rows }) => {
    for (const [first, last] of rows) {
      if (last < chosen[0] || first > chosen.at(-1)) continue;
      const [left, right] = [place(Math.max(first, chosen[0])), last >= chosen.at(-1) ? width : place(last + 1)];
      pen.fillStyle = colour.sunk;
      pen.fillRect(left, BARS + 1, Math.max(1, right - left), LANE - 1);
      pen.fillStyle = colour["strong-line"];
      pen.fillRect(left, BARS + 1, 1, LANE - 1);
      pen.fillStyle = colour.ink;
      if (pen.measureText(title).width + 8 < right - left) pen.fillText(title, left + 4, BARS + LANE / 2 + 1);
    }
  });
}
