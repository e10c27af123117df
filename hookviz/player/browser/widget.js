// The player as a widget: its parts, kept in step with the model.

import { afterPause, clampStep, pauseAt, playFrom, say, stepFor } from "./logic.js";
import { atEnd, focused, followTheme, listen, make } from "./dom.js";
import { chosen, rowsBeside } from "./variants.js";
import { makeGraphs } from "./graphs.js";
import { LINK, makeFirings, makeFound, makeNotes, makePanel } from "./panel.js";
import { makeLegend } from "./timeline.js";
import { makeTimeline } from "./ticks.js";
import { makePredict } from "./predict.js";
import { makeStops } from "./stops.js";
import { makeView } from "./view.js";
import { listenToKeys, makeKeyboard } from "./keyboard.js";
import { followLinks } from "./links.js";
import { makeSwitches } from "./switches.js";
import { openLarge } from "./parts.js";
import { makeViews } from "./views.js";
import { makeLongTimeline } from "./long.js";
import { makeControls, makeHelp } from "./controls.js";
import { fail } from "./dom.js";

const WHOLE = ["frames", "outline", "svgs", "variants", "shown", "split"];
const NOWHERE = { nextHook: "no_next_hook", previousHook: "no_previous_hook" };

/** anywidget's door: show the model in an element, and return what takes it away again. */
function render({ model, el }) {
  const life = new AbortController();
  const root = makeRoot(model);
  followTheme(root, life.signal);
  el.replaceChildren(root);
  const giveBack = takePlace(root, model.get("twin"));
  let filled = fill(root, model);
  const refill = soon(() => {
    if (life.signal.aborted) return;
    filled.abort();
    filled = fill(root, model);
  });
  for (const name of WHOLE) model.on(`change:${name}`, refill);
  return () => {
    for (const name of WHOLE) model.off(`change:${name}`, refill);
    life.abort();
    filled.abort();
    root.remove();
    giveBack();
  };
}

/** Where a page has a player that needs no kernel, the living one takes its place, and gives it back in the end. */
function takePlace(root, twin) {
  const living = (globalThis.hookvizLive ??= new Map());
  const taken = new Map();
  const take = (place) => {
    taken.set(place, [...place.childNodes]);
    place.replaceChildren(root);
  };
  living.set(twin, take);
  document.querySelectorAll(`[data-twin="${twin}"]`).forEach(take);
  return () => {
    living.delete(twin);
    for (const [place, before] of taken) place.replaceChildren(...before);
  };
}

/** Several traits may change at once: acts when all have. */
function soon(act) {
  let due = false;
  return () => {
    if (!due) queueMicrotask(() => { due = false; act(); });
    due = true;
  };
}

/** Puts everything into the root, and the keyboard back to where it was. */
function fill(root, model) {
  const ending = new AbortController();
  const inside = focused(root);
  const had = root.contains(inside);
  const key = had ? inside.dataset.key : undefined;
  root.replaceChildren();
  const { signal } = ending;
  if (model.get("outline")) openLarge(model, signal).then((large) => signal.aborted || fillRoot(root, model, signal, large)).catch((error) => fail(root, error));
  else if (model.get("frames").length) fillRoot(root, model, signal);
  else root.append(make("p", "hv-empty", say(model.get("words"), "empty")), makeNotes(model.get("notes")));
  if (had) (root.querySelector(`[data-key="${key}"]`) ?? root).focus({ preventScroll: true });
  return ending;
}

function makeRoot(model) {
  const label = say(model.get("words"), "player");
  // JupyterLab listens in the capture phase, where nothing can be stopped: only this keeps its shortcuts away.
  const quiet = { "data-lm-suppress-shortcuts": true };
  return make("div", "hv-player", "", { tabindex: 0, role: "region", "aria-label": label, ...quiet });
}

function fillRoot(root, model, signal, large) {
  const words = model.get("words");
  const hooks = model.get("hooks");
  const { frames, firings: fired, notes, beside, label } = large ?? chosen(model);
  const driver = makeDriver(model, frames, beside && model.get("split"), signal);
  const tools = { model, words, frames, beside, hooks, root, driver, go: driver.go, signal };
  const help = makeHelp(tools);
  const panel = makePanel(tools);
  const pictures = { ...tools, svgs: model.get("svgs"), label: say(words, "graph"), title: label };
  const graph = large ? makeViews({ ...pictures, large, tell: panel.tell, shows: (bands) => timeline.show(bands) }) : makeGraphs(pictures);
  const firings = makeFirings({ ...tools, firings: beside ? rowsBeside(fired, beside.firings) : fired });
  const timeline = large ? makeLongTimeline({ ...tools, scale: large.scale }) : makeTimeline({ ...tools, first: model.get("mark") ?? -1 });
  const withPanel = { ...tools, panel };
  const predict = makePredict(withPanel);
  const stops = makeStops(withPanel);
  const switches = large ? null : makeSwitches(withPanel);
  const view = makeView({ ...withPanel, large });
  const [wrong, plain] = [true, false].map((is) => [...model.get("notes"), ...notes].filter((note) => note.includes(LINK) === is));
  const found = makeFound(wrong, { ...withPanel, open: Boolean(large) });
  const keyboard = makeKeyboard(withPanel);
  const actions = { help: help.toggle, ...keyboard.actions, ...predict.actions, ...stops.actions, ...view.actions, ...switches?.actions, ...graph.actions, ...timeline.actions, ...found.actions };
  const act = (action) => {
    const before = driver.now().step;
    if (actions[action]) actions[action]();
    else driver.act(action);
    if (action in NOWHERE && driver.now().step === before && !predict.asks()) panel.tell(say(words, NOWHERE[action]));
  };
  const controls = makeControls({ ...tools, act, between: [makeLegend(tools), predict.score], after: [predict.button, view.pane] });
  driver.rules.push(predict, stops);
  root.append(layOut(graph, panel, firings, [switches, timeline, controls], signal), found.pane, makeNotes(plain), help.dialog);
  listenToKeys(root, help.dialog, act, signal);
  followLinks(root, driver.go, signal);
  const paintControls = () => controls.paint(driver.now());
  const paintStep = () => {
    const { step } = driver.now();
    if (predict.holds(step)) return;
    // What a step of a large trace is told in may have to come first.
    const told = !large || large.isTold(step);
    for (const part of told ? [graph, panel, firings, timeline, predict, stops] : [graph, timeline]) part.paint(step);
    paintControls();
    if (!told) large.tell(step).then((come) => signal.aborted || driver.now().step !== step || (come ? paintStep() : panel.tell(say(words, "no_part"))));
  };
  driver.onChange("change:step", paintStep);
  driver.onChange("change:playing", paintControls);
  paintStep();
  switches?.greet();
}

function layOut(graph, panel, firings, below, signal) {
  const [frame, bar] = [make("div", "hv-frame"), make("div", "hv-bar")];
  bar.append(...below.map((part) => part?.pane ?? ""));
  frame.append(graph.pane, panel.pane, bar, firings.pane, panel.heard);
  // The picture leaves as much room on the screen as the bar takes, however many switches and shapes are in it.
  const measured = new ResizeObserver(() => frame.style.setProperty("--hv-bar", `${bar.offsetHeight}px`));
  measured.observe(bar);
  atEnd(signal, () => measured.disconnect());
  return frame;
}

/** Moves the model, and plays it. Its rules may have a word in where it goes, and hear when it is there. */
function makeDriver(model, frames, pair, signal) {
  const count = frames.length;
  const now = () => ({
    step: clampStep(model.get("step"), count),
    count,
    playing: model.get("playing"),
    speed: model.get("speed"),
  });
  const rules = [];
  const put = (changes) => {
    const allowed = rules.reduce((wanted, rule) => rule.limit(wanted, now()), changes);
    // Setting paints, since the views listen to the model; only then is the kernel told.
    for (const [name, value] of Object.entries(allowed)) model.set(name, value);
    model.save_changes();
    for (const rule of rules) rule.settle?.();
  };
  const go = (step) => put({ step });
  const play = () => {
    const { step, playing } = now();
    put(playing ? { playing: false } : { step: playFrom(step, count), playing: true });
  };
  const onChange = (names, act) => {
    for (const name of names.split(" ")) {
      model.on(name, act);
      atEnd(signal, () => model.off(name, act));
    }
  };
  keepTime(now, put, onChange, signal);
  const act = (action) => (action === "play" ? play() : go(stepFor(action, frames, now().step, pair)));
  return { now, go, put, act, onChange, rules };
}

/** Every view of a model has a timer, set anew at each change: the first to ring moves the model and so resets the others. */
function keepTime(now, put, onChange, signal) {
  let timer = 0;
  const arm = () => {
    clearTimeout(timer);
    const { step, count, playing, speed } = now();
    if (playing) timer = setTimeout(() => put(afterPause(step, count)), pauseAt(speed));
  };
  onChange("change:step change:playing change:speed", arm);
  atEnd(signal, () => clearTimeout(timer));
  arm();
}

export { render };
export default { render };
