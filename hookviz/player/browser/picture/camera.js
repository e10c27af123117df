// Where a picture lies in its pane: its scale and its position in pixels. The node tests run this file.

/** @typedef {{ width: number, height: number }} Size */
/** @typedef {Size & { smallest: number }} PictureSize the size of a picture and of its smallest letters, in points */
/** @typedef {Size & { x: number, y: number }} Rect */
/** @typedef {{ scale: number, x: number, y: number }} Camera pixels a point, and where the picture begins in the pane */

/** A picture opens whole if its smallest letters have at least this share of the readable size; else at that size. */
export const WHOLE_SHARE = 0.7;
/** The same in a narrow pane, as on a phone, which is held nearer to the eyes, and its width in pixels. */
export const NARROW_SHARE = 0.6;
export const NARROW = 600;
/** The share of the readable size that letters keep where a picture shrinks so that what is beside a hook fits the pane. */
export const BESIDE_SHARE = 0.75;
export const NARROW_BESIDE_SHARE = 0.66;
/** The largest scale of a picture that opens whole, and the largest one that zooming reaches. */
export const LARGEST_WHOLE = 1.6;
const LARGEST = 4;
/** The share of a box that is in sight if there is no room for all of it. */
const RECOGNISED = 0.65;
/** The space around a picture, in pixels. */
export const MARGIN = 12;
/** The space that is kept around the box of the step, in pixels. */
const BOX_MARGIN = 24;

/**
 * Returns the scale at which the whole picture is visible.
 * @param {PictureSize} picture
 * @param {Size} pane
 * @param {number} [largest]
 */
export function wholeScale(picture, pane, largest = LARGEST_WHOLE) {
  return Math.min((pane.width - 2 * MARGIN) / picture.width, (pane.height - 2 * MARGIN) / picture.height, largest);
}

/**
 * Returns the scale at which the letters are readable; the whole picture is smaller, or has that scale.
 * @param {PictureSize} picture
 * @param {Size} pane
 * @param {number} readable the size of readable letters, in pixels
 * @param {number} [largest]
 */
export function readableScale(picture, pane, readable, largest) {
  return Math.max(wholeScale(picture, pane, largest), readable / picture.smallest);
}

/**
 * Returns whether a picture opens whole.
 * @param {PictureSize} picture
 * @param {Size} pane
 * @param {number} smallest the size of letters with which it does, in pixels
 * @param {number} [largest]
 */
export const opensWhole = (picture, pane, smallest, largest) => wholeScale(picture, pane, largest) * picture.smallest >= smallest;

/**
 * Returns a scale within the limits: never smaller than the whole picture, or than its natural size if that is smaller.
 * @param {number} scale
 * @param {PictureSize} picture
 * @param {Size} pane
 */
export function limitScale(scale, picture, pane) {
  const smallest = Math.min(1, wholeScale(picture, pane));
  return Math.max(smallest, Math.min(scale, Math.max(LARGEST, smallest)));
}

/**
 * Returns the camera with a position within the limits: a picture smaller than the pane is centred, a larger one covers it.
 * @param {Camera} camera
 * @param {PictureSize} picture
 * @param {Size} pane
 * @returns {Camera}
 */
export function limitPosition({ scale, x, y }, picture, pane) {
  /**
   * @param {number} at
   * @param {"width" | "height"} size
   */
  const limit = (at, size) => {
    const free = pane[size] - picture[size] * scale;
    if (free >= 0) return free / 2;
    return Math.min(MARGIN, Math.max(free - MARGIN, at));
  };
  return { scale, x: limit(x, "width"), y: limit(y, "height") };
}

/**
 * Returns the camera after zooming around a point of the pane, which stays where it is.
 * @param {Camera} camera
 * @param {number} scale
 * @param {{ x: number, y: number }} point
 * @returns {Camera}
 */
export function zoomAround(camera, scale, point) {
  const ratio = scale / camera.scale;
  return { scale, x: point.x - (point.x - camera.x) * ratio, y: point.y - (point.y - camera.y) * ratio };
}

/**
 * Returns the camera that shows a part of the picture: unchanged if the part is visible, else with the part in the
 * middle, or its beginning, which has the name, if it is larger than the pane.
 * @param {Camera} camera
 * @param {Rect} part in points
 * @param {Size} pane
 * @returns {Camera}
 */
export function reveal(camera, part, pane) {
  /**
   * @param {number} at
   * @param {number} start
   * @param {number} length
   * @param {number} room
   */
  const along = (at, start, length, room) => {
    const [from, size] = [at + start * camera.scale, length * camera.scale];
    const space = Math.min(BOX_MARGIN, Math.max(0, (room - size) / 2));
    if (from >= space - 1 && from + size <= room - space + 1) return at;
    return (size < room ? (room - size) / 2 : BOX_MARGIN) - start * camera.scale;
  };
  return {
    scale: camera.scale,
    x: along(camera.x, part.x, part.width, pane.width),
    y: along(camera.y, part.y, part.height, pane.height),
  };
}

/**
 * Returns the smallest part of the picture that holds the first of some parts, and as many of the next as the pane has
 * room for. Of one around it that is too high, it has the width, and the other way round.
 * @param {Rect[]} parts in points, the most important first
 * @param {number} scale
 * @param {Size} pane
 * @returns {Rect | null}
 */
export function joinFitting(parts, scale, pane) {
  return parts.slice(1).reduce((/** @type {Rect | null} */ joined, part) => {
    if (!joined) return null;
    const { x, y, width, height } = join(joined, part);
    const [isNarrow, isLow] = [width * scale <= pane.width, height * scale <= pane.height];
    if (!(isNarrow && isLow) && !contains(part, joined)) return joined;
    return { ...joined, ...(isNarrow ? { x, width } : {}), ...(isLow ? { y, height } : {}) };
  }, parts[0] ?? null);
}

/**
 * @param {Rect} one
 * @param {Rect} other
 * @returns {Rect}
 */
export function join(one, other) {
  const [x, y] = [Math.min(one.x, other.x), Math.min(one.y, other.y)];
  const right = Math.max(one.x + one.width, other.x + other.width);
  const bottom = Math.max(one.y + one.height, other.y + other.height);
  return { x, y, width: right - x, height: bottom - y };
}

/**
 * Returns whether one part lies inside of another, or is it.
 * @param {Rect} outer
 * @param {Rect} inner
 */
export function contains(outer, inner) {
  const { x, y, width, height } = join(outer, inner);
  return x === outer.x && y === outer.y && width <= outer.width && height <= outer.height;
}

/**
 * Returns the smallest frame around a part, null if there is none, and the box that is nearest to it.
 * @param {Rect} part
 * @param {{ frames: Rect[], boxes: Rect[] }} picture
 */
export function surroundings(part, { frames, boxes }) {
  const around = frames.filter((frame) => contains(frame, part)).sort((one, other) => areaOf(one) - areaOf(other));
  const others = boxes.filter((box) => !contains(box, part) && !contains(part, box));
  const near = others.sort((one, other) => distance(one, part) - distance(other, part));
  return [around[0] ?? null, ...near.slice(0, 1)];
}

/**
 * Returns the part of a box that is nearest to another part, large enough to recognise the box.
 * @param {Rect} box
 * @param {Rect} part
 * @returns {Rect}
 */
export function nearSide(box, part) {
  /**
   * @param {"x" | "y"} at
   * @param {"width" | "height"} size
   */
  const along = (at, size) => {
    const isAfter = box[at] >= part[at] + part[size];
    if (!isAfter && box[at] + box[size] > part[at]) return {};
    const cut = box[size] * (1 - RECOGNISED);
    return { [at]: box[at] + (isAfter ? 0 : cut), [size]: box[size] - cut };
  };
  return { ...box, ...along("x", "width"), ...along("y", "height") };
}

/** @param {Rect} rect */
const areaOf = ({ width, height }) => width * height;

/**
 * Returns how far two parts are from each other: 0 if they touch.
 * @param {Rect} one
 * @param {Rect} other
 */
function distance(one, other) {
  const across = Math.max(one.x - other.x - other.width, other.x - one.x - one.width, 0);
  const down = Math.max(one.y - other.y - other.height, other.y - one.y - one.height, 0);
  return Math.hypot(across, down);
}

/**
 * Returns a scale at which a part is no wider than the pane.
 * @param {number} scale
 * @param {number} width of the part, in points
 * @param {Size} pane
 */
export const fitWidth = (scale, width, pane) => Math.min(scale, (pane.width - 2 * MARGIN) / Math.max(width, 1));

/**
 * Returns a scale at which each of some parts fits the pane that does at the least scale: the largest one up to a scale.
 * @param {number} scale
 * @param {number} least
 * @param {Rect[]} parts in points
 * @param {Size} pane
 */
export function fitParts(scale, least, parts, pane) {
  const scales = parts.map(({ width, height }) => Math.min((pane.width - 2 * MARGIN) / width, (pane.height - 2 * MARGIN) / height));
  return Math.min(scale, ...scales.filter((one) => one >= least));
}

/**
 * Returns the part of the picture that is visible, in points.
 * @param {Camera} camera
 * @param {PictureSize} picture
 * @param {Size} pane
 * @returns {Rect}
 */
export function visiblePart({ scale, x, y }, picture, pane) {
  const [left, top] = [Math.max(0, -x / scale), Math.max(0, -y / scale)];
  const right = Math.min(picture.width, (pane.width - x) / scale);
  const bottom = Math.min(picture.height, (pane.height - y) / scale);
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/**
 * Returns at which edges of the pane the picture goes on.
 * @param {Camera} camera
 * @param {PictureSize} picture
 * @param {Size} pane
 */
export function hiddenEdges(camera, picture, pane) {
  const { x, y, width, height } = visiblePart(camera, picture, pane);
  return { left: x > 1, top: y > 1, right: x + width < picture.width - 1, bottom: y + height < picture.height - 1 };
}
