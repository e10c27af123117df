// The player: builds all its parts, and repaints them when the model changes.

import { Breakpoints } from "./timeline/breakpoints.js";
import { baselineIndex } from "./compare/comparison.js";
import { loadContent } from "./common/content.js";
import { Contents } from "./panel/contents.js";
import { makeControls } from "./panel/controls.js";
import { focusedElement, makeElement, onAbort, reportFailure } from "./common/dom.js";
import { MOVEMENTS, makeDriver } from "./common/driver.js";
import { makeFindings, makeNotes } from "./panel/findings.js";
import { makeFiringsTable } from "./panel/firings_table.js";
import { limitHeightInFrame } from "./host/frame_height.js";
import { makeHelpDialog } from "./panel/help_dialog.js";
import { handleKeys, makeEscape } from "./host/keyboard_focus.js";
import { sayWith } from "./common/labels.js";
import { tagOf } from "./host/language_switch.js";
import { Panel } from "./panel/panel.js";
import { titlePins } from "./picture/pin_titles.js";
import { makePictures } from "./compare/side_by_side.js";
import { namePlayer, numberPlayers } from "./host/player_names.js";
import { makePlotsDialog } from "./panel/plots_dialog.js";
import { Predict } from "./predict/predict.js";
import { Room } from "./predict/room.js";
import { makeShareMenu } from "./host/share_menu.js";
import { followLinks } from "./host/step_links.js";
import { makeSwitches } from "./compare/switches.js";
import { followTheme } from "./host/theme.js";
import { makeTimeline } from "./timeline/timeline.js";
import { makeViewMenu } from "./panel/view_menu.js";

/** @import { Actions, Context, Model, LoadedContent } from "./common/types" */

/** Traits whose change rebuilds the player. */
const RELOADING_TRAITS = ["content", "shown", "split"];
/** The messages for movements that have no target. @type {{ [action: string]: string }} */
const NO_TARGET_TEXTS = { nextHook: "no_next_hook", previousHook: "no_previous_hook" };

/**
 * Shows a model in an element; returns the root, and a function that removes it.
 * @param {Model} model
 * @param {HTMLElement} el
 */
export function showPlayer(model, el) {
  const life = new AbortController();
  const root = makeRoot(model);
  followTheme(root, life.signal);
  el.replaceChildren(root);
  limitHeightInFrame(root, life.signal);
  let filling = loadPlayer(root, model);
  const refill = batch(() => {
    if (life.signal.aborted) return;
    filling.abort();
    filling = loadPlayer(root, model);
  });
  for (const name of RELOADING_TRAITS) model.on(`change:${name}`, refill);
  const close = () => {
    for (const name of RELOADING_TRAITS) model.off(`change:${name}`, refill);
    life.abort();
    filling.abort();
    root.remove();
    numberPlayers();
  };
  return { root, close };
}

/**
 * Returns a function that acts once, in a microtask, however often it is called before: several traits may change at once.
 * @param {() => void} act
 */
function batch(act) {
  let isDue = false;
  return () => {
    if (!isDue) queueMicrotask(() => { isDue = false; act(); });
    isDue = true;
  };
}

/** @param {Model} model */
function makeRoot(model) {
  const label = sayWith(model.get("content").labels)("player");
  // JupyterLab handles shortcuts in the capture phase, before our listeners; only this attribute suppresses them.
  // reveal.js would turn the slide on a swipe, which moves a large picture here.
  const quiet = { "data-lm-suppress-shortcuts": true, "data-prevent-swipe": true };
  return makeElement("div", "hv-player", "", { tabindex: 0, role: "region", "aria-label": label, ...quiet });
}

/**
 * Loads the content, builds the player in the root and restores the focus; returns the controller that ends it.
 * @param {HTMLElement} root
 * @param {Model} model
 */
function loadPlayer(root, model) {
  const ending = new AbortController();
  const { signal } = ending;
  loadContent(model, signal).then((loaded) => {
    if (signal.aborted) return;
    const holder = focusedElement(root);
    const key = root.contains(holder) ? (holder?.dataset.key ?? "") : null;
    root.lang = tagOf(loaded.content.language);
    root.replaceChildren();
    root.classList.toggle("hv-has-views", loaded.content.grouped);
    namePlayer(root, loaded, signal);
    if (loaded.runs.length) buildPlayer(root, model, loaded, signal);
    else root.append(makeElement("p", "hv-empty", loaded.say("empty")), makeNotes(allNotes(loaded)));
    const next = key === null ? null : (root.querySelector(`[data-key="${key}"]`) ?? root);
    /** @type {HTMLElement | null} */ (next)?.focus({ preventScroll: true });
  }).catch((error) => reportFailure(root, error));
  return ending;
}

/**
 * @param {LoadedContent} loaded
 * @param {number} [shown]
 */
function allNotes({ content, runs }, shown = 0) {
  return [...content.notes, ...(runs[shown]?.notes ?? [])];
}

/**
 * @param {HTMLElement} root
 * @param {Model} model
 * @param {LoadedContent} loaded
 * @param {AbortSignal} signal
 */
function buildPlayer(root, model, loaded, signal) {
  const { say } = loaded;
  const shown = Math.min(model.get("shown"), loaded.runs.length - 1);
  const index = baselineIndex(loaded.content, shown, model.get("flipped"));
  const [run, baseline] = [loaded.runs[shown], index === null ? null : loaded.runs[index]];
  const driver = makeDriver(model, run.steps, Boolean(baseline && model.get("split")), signal);
  /** @type {Context} */
  const context = { model, content: loaded.content, fetchChunk: loaded.fetchChunk, say, run, baseline, root, driver, signal };
  const panel = new Panel(context);
  const timeline = makeTimeline(context);
  const pictures = makePictures(context, (text) => panel.showMessage(text));
  const firings = makeFiringsTable(context);
  const [predict, breakpoints] = [new Predict(context, panel), new Breakpoints(context, panel)];
  const [switches, room] = [makeSwitches(context, panel), new Room(context, panel, predict)];
  const plots = makePlotsDialog(context);
  const menu = makeViewMenu(context, panel, plots.button);
  const [findings, help, contents] = [makeFindings(context, panel), makeHelpDialog(context), new Contents(context, panel)];
  const actions = {
    ...movementActions(context, pictures.openBox),
    help: help.toggle,
    ...makeEscape(context, panel).actions,
    ...plots.actions,
    ...[predict, room, breakpoints, menu, switches, pictures, findings].reduce((all, part) => ({ ...all, ...part.actions }), {}),
  };
  const act = makeActor(context, actions, (key) => predict.isAsking || panel.showMessage(say(key)));
  const share = makeShareMenu(context, panel);
  const controls = makeControls(context, act, [predict.button, menu.pane, share.pane]);
  driver.rules.push(predict, breakpoints);
  help.fill(actions);
  const foot = makeElement("div", "hv-foot");
  foot.append(switches.pane, timeline.pane, controls.pane);
  contents.pane.append(timeline.legend, predict.score);
  const frame = makeElement("div", "hv-frame");
  frame.append(contents.pane, pictures.pane, panel.column, foot, panel.liveRegion);
  // Findings come first: a jump to them leaves the picture in sight.
  root.append(frame, findings.pane, firings.pane);
  measureAround(frame, contents, foot, signal);
  predict.score.append(room.button);
  root.append(makeNotes(allNotes(loaded, shown)), help.dialog, ...plots.parts);
  handleKeys(root, act, signal);
  paintOnChange(context, { pictures, panel, firings, timeline, contents, predict, breakpoints, controls });
  switches.showFlipMessage();
  followLinks(context, panel);
  titlePins(context);
}

/** Movements after which a large trace opens the box that holds the step. */
const OPENING_MOVEMENTS = ["nextHook", "previousHook", "last"];

/**
 * @param {Context} context
 * @param {() => void} openBox
 * @returns {Actions}
 */
function movementActions({ driver }, openBox) {
  /** @param {string} action */
  const move = (action) => {
    const before = driver.position().step;
    driver.move(action);
    if (OPENING_MOVEMENTS.includes(action) && driver.position().step !== before) openBox();
  };
  return Object.fromEntries(MOVEMENTS.map((action) => [action, () => move(action)]));
}

/**
 * Returns a function that carries out an action by its name. If there is no next or previous hook, a message says so.
 * @param {Context} context
 * @param {Actions} actions
 * @param {(key: string) => void} showMessage
 */
function makeActor({ driver }, actions, showMessage) {
  return (/** @type {string} */ action) => {
    const before = driver.position().step;
    actions[action]?.();
    if (action in NO_TARGET_TEXTS && driver.position().step === before) showMessage(NO_TARGET_TEXTS[action]);
  };
}

/** @typedef {{ paint: (step: number) => void }} Painted */

/**
 * Paints the step whenever the model moves. If its words have to be fetched first, the picture and the timeline are
 * painted at once, and the rest when the words are there.
 * @param {Context} context
 * @param {{ pictures: Painted, panel: Panel, firings: Painted, timeline: Painted, contents: Painted, predict: Predict,
 *   breakpoints: Painted, controls: ReturnType<typeof makeControls> }} parts
 */
function paintOnChange({ driver, run, say, signal }, parts) {
  const { pictures, panel, firings, timeline, contents, predict, breakpoints, controls } = parts;
  const paintControls = () => controls.paint(driver.position());
  const paintStep = () => {
    const { step } = driver.position();
    if (predict.holdAtQuestion(step)) return;
    const hasWords = run.steps[step].words !== null;
    const withoutWords = [pictures, timeline, contents];
    const painted = hasWords ? [pictures, panel, firings, timeline, contents, predict, breakpoints] : withoutWords;
    for (const part of painted) part.paint(step);
    paintControls();
    if (hasWords) return;
    run.fetchWords(step).then((hasCome) => {
      if (signal.aborted || driver.position().step !== step) return;
      if (hasCome) paintStep();
      else panel.showMessage(say("no_part"));
    });
  };
  driver.onChange("change:step", paintStep);
  driver.onChange("change:playing change:hooks_only", paintControls);
  paintStep();
}

/**
 * Measures what is above and below the picture, which gets the height that they leave.
 * @param {HTMLElement} frame
 * @param {Contents} contents
 * @param {HTMLElement} foot
 * @param {AbortSignal} signal
 */
function measureAround(frame, { pane, summary, list }, foot, signal) {
  const measure = () => {
    // On a phone the parts of the contents are apart, and their legend is below the buttons.
    const above = pane.offsetHeight || summary.offsetHeight + list.offsetHeight;
    frame.style.setProperty("--hv-contents", `${above}px`);
    frame.style.setProperty("--hv-foot", `${foot.offsetHeight}px`);
  };
  const measured = new ResizeObserver(measure);
  for (const part of [pane, summary, list, foot]) measured.observe(part);
  measure();
  onAbort(signal, () => measured.disconnect());
}
