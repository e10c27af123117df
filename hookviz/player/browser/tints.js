// Boxes in the colours of the gradients that have arrived in them.

import { mark } from "./dom.js";
import { arrivalsIn, colourAt, placeOf, spreadOf } from "./norms.js";

/** A box in which norms differ goes from the colour of the smallest, at its left, to that of the largest. */
export function makeTints({ picture, elements }, index, frames, scale) {
  const boxes = [...arrivalsIn(frames, index)].filter(([id]) => elements.has(id));
  const painters = boxes.map(([id, arrivals]) => tinter(elements.get(id), picture, arrivals, scale));
  return (step, on) => painters.forEach((paint) => paint(step, on && scale));
}

function tinter(box, picture, arrivals, scale) {
  const [blend, ...stops] = ["linearGradient", "stop", "stop"].map((name) => document.createElementNS(picture.namespaceURI, name));
  // Ids are the document's: it must be nobody else's.
  const id = `hv-${Math.random().toString(36).slice(2)}`;
  mark(blend, { id });
  stops.forEach((stop, i) => mark(stop, { offset: 0.25 + i / 2 }));
  blend.append(...stops);
  picture.prepend(blend);
  let before;
  return (step, on) => {
    const { low, high, zero, bad } = spreadOf(on ? arrivals : [], step);
    const told = [low, high, zero, bad].join();
    if (told === before) return;
    before = told;
    const some = low <= high && !bad;
    box.classList.toggle("hv-bad", bad);
    box.classList.toggle("hv-zero", zero && low > high && !bad);
    if (some) stops.forEach((stop, i) => { stop.style.stopColor = colourAt(placeOf([low, high][i], scale), "tint"); });
    box.querySelector(":scope > .hv-box").style.fill = some ? `url(#${id})` : "";
  };
}
