// The timeline of a large trace: too many steps for a shape each, so one sees how large the gradients are.

import { KEYS, kindsOf, say } from "./logic.js";
import { atEnd, listen, make, mark, textButton } from "./dom.js";
import { colourAt, placeOf, shortNorm } from "./norms.js";
import { GROUPS, columnsOf, holding, placeAmong, stepsOf, zoomed } from "./zoom.js";
import { drawBands, drawColumns, drawLanes, penOn } from "./strip.js";
import { dragOn } from "./timeline.js";

Object.assign(KEYS, { "+": "closer", "=": "closer", "-": "farther", g: "group", c: "norms" });

export function makeLongTimeline({ model, frames, scale, words, root, go, driver, signal }) {
  const count = frames.length;
  const range = { "aria-valuemin": 1, "aria-valuemax": count };
  const pane = make("div", "hv-timeline hv-long", "", { role: "slider", tabindex: 0, "aria-label": say(words, "timeline"), ...range });
  const [track, canvas, here, part, none] = [make("div", "hv-track"), make("canvas"), make("div", "hv-needle"), make("div", "hv-window"), make("p", "hv-none")];
  track.append(canvas, here, part, none);
  pane.append(track);
  let [now, group, steps, bands] = [driver.now().step, "all", stepsOf(frames), []];
  let shown = [0, count];
  const kinds = kindsOf(frames);
  const draw = () => {
    const width = track.clientWidth;
    if (!width) return;
    const chosen = steps.slice(...shown);
    const columns = columnsOf(frames, chosen, Math.min(width, chosen.length));
    const lanes = group === "kinds" ? kinds : [];
    const strip = { ...penOn(canvas, root, width, lanes.length || Number(group === "modules")), step: width / columns.length };
    drawColumns(strip, columns, scale, model.get("norms"));
    drawLanes(strip, columns, lanes, words);
    if (group === "modules") drawBands(strip, bands, chosen);
    none.textContent = chosen.length ? "" : say(words, `none_${group}`);
    point();
  };
  const point = () => {
    const [from, to] = shown;
    const percent = (part, whole) => `${(part / Math.max(1, whole)) * 100}%`;
    here.style.left = percent(placeAmong(steps, now) - from + 0.5, to - from);
    Object.assign(part.style, { left: percent(from, steps.length), width: percent(to - from, steps.length) });
    part.hidden = to - from >= steps.length;
  };
  const look = (next) => {
    const moved = next.join() !== shown.join();
    shown = next;
    if (moved) draw();
    else point();
  };
  const zoom = (by) => look(zoomed(shown, placeAmong(steps, now), by, steps.length));
  const choose = (name) => {
    group = choice.value = name;
    steps = stepsOf(frames, group);
    shown = [0, steps.length];
    draw();
  };
  const paint = (step) => {
    now = step;
    look(holding(shown, placeAmong(steps, step), steps.length));
    mark(pane, { "aria-valuenow": step + 1, "aria-valuetext": `${say(words, "step_of", { step: step + 1, steps: count })}: ${frames[step].title}` });
  };
  const actions = {
    closer: () => zoom(0.5),
    farther: () => zoom(2),
    group: () => choose(GROUPS[(GROUPS.indexOf(group) + 1) % GROUPS.length]),
  };
  const choice = make("select", "hv-button", "", { "aria-label": say(words, "group") });
  for (const name of GROUPS) choice.append(make("option", "", say(words, `group_${name}`), { value: name }));
  listen(choice, "change", () => choose(choice.value), signal);
  const buttons = [["farther", "−"], ["closer", "+"]].map(([name, sign]) => {
    const button = textButton(sign, actions[name], signal);
    mark(button, { "aria-label": say(words, name), title: say(words, name) });
    return button;
  });
  const tools = make("div", "hv-zoom");
  mark(choice, { "aria-keyshortcuts": "G" });
  tools.append(choice, make("kbd", "", "G"), ...buttons);
  const below = make("div", "hv-below");
  below.append(makeScale(scale, words), tools);
  const side = make("div");
  side.append(pane, below);
  const colored = () => {
    below.classList.toggle("hv-plain", !model.get("norms"));
    draw();
  };
  driver.onChange("change:norms", colored);
  watch(root, track, draw, signal);
  dragOn(pane, track, (place) => steps.length && go(steps[Math.floor(shown[0] + place * (shown[1] - shown[0]))]), signal);
  colored();
  return { pane: side, paint, actions, show: (next) => { bands = next; if (group === "modules") draw(); } };
}

function watch(root, track, draw, signal) {
  const observer = new ResizeObserver(draw);
  observer.observe(track);
  const dark = new MutationObserver(draw);
  dark.observe(root, { attributes: true, attributeFilter: ["class"] });
  atEnd(signal, () => [observer, dark].forEach((one) => one.disconnect()));
}

/** What the colours and marks say, with numbers. */
function makeScale(scale, words) {
  const pane = make("p", "hv-scale");
  const ramp = make("span", "hv-ramp", "", { role: "img", "aria-label": say(words, "to") });
  if (scale) {
    const [first, last] = [placeOf(scale.low, scale), placeOf(scale.high, scale)];
    ramp.style.background = `linear-gradient(90deg, ${[0, 1, 2, 3, 4].map((i) => colourAt(first + ((last - first) * i) / 4, "tone")).join()})`;
    const ends = make("span");
    ends.append(make("b", "", shortNorm(scale.low)), ramp, make("b", "", shortNorm(scale.high)));
    pane.append(make("span", "", say(words, "scale")), ends);
  }
  for (const name of ["zero", "bad", "hooks"]) {
    const sample = make("span");
    sample.append(make("i", `hv-sample-${name}`), say(words, `scale_${name}`));
    pane.append(sample);
  }
  return pane;
}
