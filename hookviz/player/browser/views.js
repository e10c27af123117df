// The pictures of a large trace: one sees the inside of a box, enters others from there, and a trail leads back.

import { KEYS, say } from "./logic.js";
import { fail, focused, listen, make, mark, textButton } from "./dom.js";
import { fitPictures, follow, makePicture } from "./graph.js";
import { svgOf } from "./parts.js";
import { makeSearch } from "./search.js";
import { makeTints } from "./tints.js";

Object.assign(KEYS, { e: "enter", u: "out", "/": "search" });

/** The trail above, and below it the picture of the box that was entered. */
export function makeViews({ model, root, words, frames, large, driver, label, tell, shows, signal }) {
  const trail = make("nav", "hv-trail", "", { "aria-label": say(words, "trail") });
  const [side, pane] = [make("div", "hv-views"), make("div", "hv-graph")];
  const seen = new Map();
  let wanted = "";
  let now = driver.now().step;
  let at = null;
  const show = async (name) => {
    wanted = name;
    const view = seen.get(name) ?? (await load(name));
    // Meanwhile one may have asked for another.
    if (signal.aborted || wanted !== name) return;
    if (!view) return tell(say(words, "no_part"));
    const had = pane.contains(focused(root)) || trail.contains(focused(root));
    at?.picture.holder.remove();
    at = view;
    pane.append(view.picture.holder);
    // What had the keyboard may have gone with the picture before.
    if (had) root.focus({ preventScroll: true });
    fit();
    drawTrail();
    shows(view.bands);
    root.dispatchEvent(new Event("hv-drawn", { bubbles: true }));
  };
  const load = async (name) => {
    const view = await large.part(name);
    const svg = view && (await svgOf(view, model.get("svgs"), large.part));
    if (!svg) return null;
    const index = indexOf(view);
    const picture = makePicture(svg, label, frames, { ...noPins, index });
    for (const box of picture.holder.querySelectorAll(DOORS)) {
      const to = behind({ name, view }, box);
      if (!to) continue;
      const title = box.querySelector("text").textContent;
      box.classList.add("hv-door");
      mark(box, { role: "button", tabindex: 0, "aria-label": say(words, box.matches(".hv-port") ? "go_there" : "enter", { box: title }) });
      listen(box, "keydown", (event) => event.key === "Enter" && (event.stopPropagation(), enter(to)), signal);
    }
    picture.holder.querySelector("svg").setAttribute("role", "group");
    const titleOf = (id) => picture.elements.get(id)?.querySelector("text").textContent ?? "";
    const bands = Object.entries(view.spans).map(([id, rows]) => ({ rows, title: titleOf(id) }));
    const made = { name, view, picture, bands, tint: makeTints(picture, index, frames, large.scale) };
    seen.set(name, made);
    return made;
  };
  const enter = (name) => show(name).catch((error) => fail(root, error));
  const search = makeSearch({ root, words, frames, large, enter, go: driver.go, signal });
  const head = make("div", "hv-top");
  head.append(trail, search.button);
  side.append(head, search.pane, pane);
  /** The view to which a closed box, or the name of what lies outside, leads. */
  const behind = (at, { dataset: { id } }) => (id in at.view.spans ? inside(at, id) : at.view.ports[id]);
  // A box of a pass leads to a view of that pass; one in a picture of passes says where it leads.
  const inside = ({ name, view }, id) => view.doors?.[id] ?? `${name.split("/")[0]}/${id}`;
  const holds = (spans) => spans.some(([first, last]) => first <= now && now <= last);
  /** Towards the step: into the box that holds it, or out of one that does not. */
  const approach = () => {
    if (!at) return;
    if (!holds(at.view.own)) return leave() || tell(say(words, "not_here"));
    const found = Object.entries(at.view.spans).find(([, spans]) => holds(spans));
    if (found) tell(""), enter(inside(at, found[0]));
    else tell(say(words, "no_box"));
  };
  const leave = () => {
    const around = at?.view.trail.at(-2);
    if (around) tell(""), enter(around[0]);
    else tell(say(words, "outermost"));
    return Boolean(around);
  };
  const drawTrail = () => {
    const [here, ...around] = at.view.trail.toReversed();
    const buttons = around.toReversed().map(([name, title]) => textButton(title, () => enter(name), signal));
    trail.replaceChildren(...buttons, make("strong", "hv-here", here[1], { "aria-current": "true" }), make("span", "hv-elsewhere"));
    paintElsewhere();
  };
  /** To the picture of another pass; among pictures of passes, one stays where the step is seen. */
  const turn = (step) => {
    if (at ? !at.view.doors : !large.overview) enter(large.tops[frames[step].picture]);
    else if (!at || !holds(at.view.own)) enter(large.overview);
  };
  const paintElsewhere = () => {
    const place = trail.querySelector(".hv-elsewhere");
    if (place) place.textContent = at && !holds(at.view.own) ? say(words, "elsewhere", { step: now + 1 }) : "";
  };
  const paint = (step) => {
    const turned = frames[step].picture !== frames[now].picture;
    now = step;
    if (turned || !at) turn(step);
    at?.picture.paint(step);
    at?.tint(step, model.get("norms"));
    at?.picture.align();
    paintElsewhere();
    follow(pane, at?.picture.holder.querySelector(".hv-now"));
  };
  const letters = () => (model.get("large") ? { smallest: 18.1 } : { smallest: 12, least: 10.5 });
  const fit = fitPictures(pane, () => (at ? [at.picture] : []), letters, () => paint(now), signal);
  driver.onChange("change:large", fit);
  driver.onChange("change:norms", () => paint(now));
  listen(pane, "click", (event) => {
    const door = event.target.closest(".hv-door");
    if (door) return enter(behind(at, door));
    const step = at?.picture.stepAt(event.target, now);
    if (step !== undefined) driver.go(step);
  }, signal);
  return { pane: side, paint, actions: { enter: approach, out: leave, search: search.open } };
}

const DOORS = ".hv-fold, .hv-port";
const noPins = { pins: { placeOf: () => -1, isOff: () => false }, struck: false };

/** What a picture shows at which step. */
function indexOf({ steps, texts, spans }) {
  return { steps: new Map(Object.entries(steps)), texts: new Map(Object.entries(texts)), spans: new Map(Object.entries(spans)) };
}
