// Where pills move: points along the arrows of the picture, and the keyframes of a trip. The node tests run this file.

/** @typedef {{ x: number, y: number }} Point */

/** The number of points of a trip. */
const POINTS = 16;
/** The part of a trip in which a pill appears or disappears. */
const RAMP = 0.3;
/** The width of a digit relative to the size of the letters. */
const DIGIT = 0.56;

/**
 * How pills begin and end that do not simply appear: [size, opacity].
 * @type {{ [look: string]: { begin?: [number, number], end?: [number, number] } }}
 */
const LOOKS = {
  "hv-drops": { begin: [1, 0] },
  "hv-stamp": { begin: [1.4, 0] },
  "hv-sum": { begin: [0.7, 0] },
  "hv-sinks": { end: [0.2, 0] },
  "hv-pops": { begin: [0.2, 0] },
  "hv-fades": { end: [1, 0] },
  "hv-writes": { begin: [1, 0] },
  "hv-starts": { begin: [0.4, 0] },
};

/**
 * Returns points at equal distances on a path, which consists of straight lines and Bézier curves with absolute points.
 * @param {string} d
 * @returns {Point[]}
 */
export function samplePath(d) {
  const fine = [...d.matchAll(/([MLC])([^MLC]*)/g)].reduce((/** @type {Point[]} */ points, [, command, numbers]) => {
    const given = readPoints(numbers);
    if (command !== "C") return [...points, ...given];
    for (let i = 0; i + 2 < given.length; i += 3) points.push(...curve(points[points.length - 1], given.slice(i, i + 3)));
    return points;
  }, []);
  return spread(fine);
}

/** @param {string} numbers */
function readPoints(numbers) {
  const all = (numbers.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
  return all.flatMap((x, i) => (i % 2 ? [] : [{ x, y: all[i + 1] }]));
}

/**
 * @param {Point} start
 * @param {Point[]} controls
 */
function curve(start, [one, two, end]) {
  return Array.from({ length: POINTS }, (_, i) => {
    const [t, u] = [(i + 1) / POINTS, 1 - (i + 1) / POINTS];
    /** @param {"x" | "y"} axis */
    const at = (axis) => u ** 3 * start[axis] + 3 * u * u * t * one[axis] + 3 * u * t * t * two[axis] + t ** 3 * end[axis];
    return { x: at("x"), y: at("y") };
  });
}

/**
 * @param {Point} one
 * @param {Point} other
 */
const distance = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);

/**
 * Returns points at equal distances on a line through some points.
 * @param {Point[]} line
 * @returns {Point[]}
 */
export function spread(line) {
  const lengths = [0];
  for (let i = 1; i < line.length; i += 1) lengths.push(lengths[i - 1] + distance(line[i - 1], line[i]));
  const whole = lengths[lengths.length - 1];
  let at = 1;
  return Array.from({ length: POINTS }, (_, i) => {
    const wanted = (whole * i) / (POINTS - 1);
    while (at < line.length - 1 && lengths[at] < wanted) at += 1;
    const [one, other] = [line[Math.max(0, at - 1)], line[Math.min(at, line.length - 1)]];
    const part = (wanted - lengths[at - 1]) / (lengths[at] - lengths[at - 1] || 1);
    return { x: one.x + (other.x - one.x) * part, y: one.y + (other.y - one.y) * part };
  });
}

/**
 * Returns the points of a trip along an arrow. It begins and ends beside the arrow if it has a place there.
 * @param {Point[]} arrow
 * @param {Point | null} from
 * @param {Point | null} to
 */
export function joinArrow(arrow, from, to) {
  const [first, last] = [from ? nearest(arrow, from) : 0, to ? nearest(arrow, to) : arrow.length - 1];
  return spread([...(from ? [from] : []), ...arrow.slice(first, Math.max(first, last) + 1), ...(to ? [to] : [])]);
}

/**
 * @param {Point[]} points
 * @param {Point} place
 */
function nearest(points, place) {
  const distances = points.map((point) => distance(point, place));
  return distances.indexOf(Math.min(...distances));
}

/**
 * Returns the middle of the number at the end of a text.
 * @param {{ x: number, y: number, size: number, anchor: string }} place
 * @param {string} text
 * @param {string} number
 * @returns {Point}
 */
export function numberPoint({ x, y, size, anchor }, text, number) {
  const [whole, part] = [text, number].map(({ length }) => length * size * DIGIT);
  const end = anchor === "end" ? x : anchor === "middle" ? x + whole / 2 : x + whole;
  return { x: end - Math.min(part, whole) / 2, y: y - size * 0.35 };
}

/**
 * Returns the keyframes of a trip: transform and opacity alone, which browsers move without layout.
 * @param {Point[]} points
 * @param {string} look its CSS classes
 */
export function keyframes(points, look) {
  /** @type {typeof LOOKS[string]} */
  const { begin, end } = Object.assign({}, ...look.split(" ").map((name) => LOOKS[name]));
  return points.map(({ x, y }, i) => {
    const t = i / (points.length - 1);
    const [size, opacity] = t < 0.5 ? mix(begin, t / RAMP) : mix(end, (1 - t) / RAMP);
    return { transform: `translate(${round(x)}px, ${round(y)}px) scale(${round(size)})`, opacity: round(opacity) };
  });
}

/**
 * @param {[number, number] | undefined} extreme
 * @param {number} part
 */
const mix = (extreme = [1, 1], part) => extreme.map((value) => value + (1 - value) * Math.min(1, part));

/** @param {number} value */
const round = (value) => Math.round(value * 100) / 100;
