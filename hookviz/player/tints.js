// Boxes in the colours of the gradients that have arrived in them.

import { mark } from "./dom.js";
import { arrivalsIn, colourAt, placeOf, spreadOf } from "./norms.js";

/** A box in which norms differ goes from the colour of the smallest, at its left, to that of the largest. */
export function makeTints({ picture, elements }, index, frames, scale) {
  const boxes = [...arrivalsIn(frames, index)].filter(([id]) => elements.has(id)).map(([id, arrivals]) => ({ arrivals, box: elements.get(id), told: "" }));
  return (step, on) => {
    for (const one of boxes) {
      const spread = on && scale ? spreadOf(one.arrivals, step) : { low: 1, high: 0 };
      const told = JSON.stringify(spread);
      if (told !== one.told) tint(picture, one, spread, scale);
      one.told = told;
    }
  };
}

function tint(picture, { box }, { low, high, zero, bad }, scale) {
  const outline = box.querySelector(":scope > .hv-box");
  box.classList.toggle("hv-bad", Boolean(bad));
  box.classList.toggle("hv-zero", Boolean(zero && low > high));
  const ends = low > high || bad ? [] : [low, high].map((norm) => colourAt(placeOf(norm, scale), "tint"));
  outline.style.fill = ends[0] === ends[1] ? (ends[0] ?? "") : `url(#${blend(picture, box, ends)})`;
}

/** The id of a gradient, in the sense of a drawing: ids are the document's, so they must be nobody else's. */
function blend(picture, box, ends) {
  box.dataset.blend ??= `hv-${Math.random().toString(36).slice(2)}`;
  let made = picture.querySelector(`#${box.dataset.blend}`);
  if (!made) {
    made = document.createElementNS(picture.namespaceURI, "linearGradient");
    mark(made, { id: box.dataset.blend });
    picture.prepend(made);
  }
  made.replaceChildren(...ends.map((colour, i) => {
    const stop = document.createElementNS(picture.namespaceURI, "stop");
    mark(stop, { offset: 0.25 + i / 2 });
    stop.style.stopColor = colour;
    return stop;
  }));
  return box.dataset.blend;
}
