// The timeline of a large trace: too many steps for a shape each, so one sees how large the gradients are.

import { say } from "./logic.js";
import { make, mark } from "./dom.js";
import { dragOn } from "./timeline.js";

/** The columns of a timeline: what of the steps that share a column of pixels is to be seen. */
export function columnsOf(frames, count) {
  const columns = Array.from({ length: count }, () => ({ low: Infinity, high: -Infinity, hook: false, bad: false, zero: false }));
  frames.forEach(({ glyph, norm }, step) => {
    const column = columns[Math.floor((step * count) / frames.length)];
    column.hook ||= glyph === "hook";
    column.bad ||= glyph === "exception" || typeof norm === "string";
    if (norm === 0) column.zero = true;
    else if (typeof norm === "number") [column.low, column.high] = [Math.min(column.low, norm), Math.max(column.high, norm)];
  });
  return columns;
}

/** The smallest and the largest of all norms that are above 0; null where there are none. */
export function rangeOf(columns) {
  const [low, high] = [Math.min(...columns.map((one) => one.low)), Math.max(...columns.map((one) => one.high))];
  return low <= high ? [low, high] : null;
}

/** How high a norm stands between the smallest and the largest, on a scale of powers of ten: from 0 to 1. */
export function heightOf(norm, [low, high]) {
  return high > low ? Math.log(norm / low) / Math.log(high / low) : 1;
}

export function makeLongTimeline({ frames, words, root, go, signal }) {
  const count = frames.length;
  const range = { "aria-valuemin": 1, "aria-valuemax": count };
  const pane = make("div", "hv-timeline hv-long", "", { role: "slider", tabindex: 0, "aria-label": say(words, "timeline"), ...range });
  const [track, canvas, here] = [make("div", "hv-track"), make("canvas"), make("div", "hv-needle")];
  const scale = make("p", "hv-scale");
  track.append(canvas, here);
  pane.append(track);
  const side = make("div");
  side.append(pane, scale);
  const draw = () => {
    const width = track.clientWidth;
    if (!width) return;
    const ratio = globalThis.devicePixelRatio || 1;
    Object.assign(canvas, { width: width * ratio, height: HEIGHT * ratio });
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const columns = columnsOf(frames, Math.min(width, count));
    drawColumns(pen, columns, width / columns.length, colours(root));
    const limits = rangeOf(columns);
    const shown = limits && limits.map((norm) => String(Number(norm.toPrecision(2))));
    scale.textContent = limits ? say(words, "scale", { low: shown[0], high: shown[1] }) : "";
  };
  const paint = (step) => {
    here.style.left = `${((step + 0.5) / count) * 100}%`;
    mark(pane, { "aria-valuenow": step + 1, "aria-valuetext": `${say(words, "step_of", { step: step + 1, steps: count })}: ${frames[step].title}` });
  };
  const observer = new ResizeObserver(draw);
  observer.observe(track);
  const dark = new MutationObserver(draw);
  dark.observe(root, { attributes: true, attributeFilter: ["class"] });
  signal.addEventListener("abort", () => [observer, dark].forEach((one) => one.disconnect()));
  dragOn(pane, track, (part) => go(Math.min(count - 1, Math.floor(part * count))), signal);
  return { pane: side, paint };
}

const HEIGHT = 44;
const FLOOR = 34;

const colours = (root) => Object.fromEntries(["purple", "hook", "red", "strong-line", "quiet"].map((name) => [name, getComputedStyle(root).getPropertyValue(`--hv-${name}`)]));

/** Bars for norms, from the smallest in a column to the largest; below them hooks; crosses where a number is none. */
function drawColumns(pen, columns, width, colour) {
  const limits = rangeOf(columns);
  columns.forEach(({ low, high, hook, bad, zero }, i) => {
    const x = i * width;
    const bar = Math.max(1, width - (width > 3 ? 1 : 0));
    const fill = (name, top, bottom) => {
      pen.fillStyle = colour[name];
      pen.fillRect(x, top, bar, bottom - top);
    };
    if (high >= low) fill("purple", FLOOR - 4 - heightOf(high, limits) * (FLOOR - 8), FLOOR - heightOf(low, limits) * (FLOOR - 8));
    if (zero) fill("quiet", FLOOR - 1, FLOOR + 1);
    if (hook) fill("hook", FLOOR + 3, HEIGHT);
    if (bad) fill("red", 0, HEIGHT);
  });
}
