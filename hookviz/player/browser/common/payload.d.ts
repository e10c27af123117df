// Made from hookviz/player/payload.py by `make bundle`: change that file, not this one.

export type Norm = number | string | null;
export type PictureText = [number, string, string[]];
export type Chunk = StepsChunk | View | IndexChunk | PlotChunk;

/** A question that is asked before a step. The answer is numbers, or one of several choices. */
export interface Question {
  text: string;
  /** The index of the run that it is about. */
  run: number;
  /** The right numbers, separated by commas. */
  answer?: string;
  /** (wrong numbers, why they are wrong). */
  mistakes?: [string, string][];
  choices?: string[];
  /** The index of the right choice. */
  right?: number;
  /** Why each choice is wrong; empty for the right one. */
  reasons?: string[];
  /** The index of the hook whose source is shown with it. */
  hook?: number;
}

/** Why a gradient has its value. */
export interface Reason {
  /** The formula with its values filled in. */
  text: string;
  /** The formula as PyTorch's derivatives.yaml has it; may be empty. */
  source: string;
  note: string;
}

/** A text of the user's code. */
export interface SourceText {
  /** Its file or notebook cell. */
  title: string;
  text: string;
  /** The line number of the first line of ``text``. */
  first_line: number;
}

/** A tensor on a card. */
export interface Amount {
  /** Its name, or where a gradient comes from or goes to; empty for the only one. */
  name: string;
  /** Its only number, a short list of numbers, or its norm. */
  value: string;
  /** The norm, for the bar; None for no bar. */
  size: number | null;
  /** What the value is the norm of. */
  note: string;
}

/** A card of a step: what it begins with, what it ends with, or what else a hook was given. */
export interface Card {
  role: "before" | "after" | "extra";
  label: string;
  amounts: Amount[];
}

/** The texts that the panel shows at a step. */
export interface StepWords {
  title: string;
  sentence: string;
  /** Whether the step belongs to the forward pass. */
  forward: boolean;
  cards: Card[];
  before: string | null;
  /** All numbers or statistics of the cards. */
  after: string | null;
  /** (source or target, gradient) for each gradient that arrives or is sent. */
  gradients: [string, string][];
  /** (parameter, what an optimizer did to it); the last one may be (empty, how many others there are). */
  moves?: [string, string][];
  /** What the hook did, with a verb; or a short form of a long sentence. Missing if the sentence is the headline. */
  headline?: string;
  /** What else is known of what the hook did. */
  facts?: string;
  reasons?: Reason[];
  /** The line of the user's code that the step belongs to. */
  code?: [number, number | null, string, number | null];
  /** The dict in which the hook is registered, and when the hook runs. */
  registration: string;
  /** The hook that gets this gradient next. */
  next_hook: string;
  /** The tensor whose ``.grad`` the step writes; ``after`` is its value. */
  writes_grad_of?: string;
}

/** An overview of all steps, which is sent first: a column for each field. */
export interface Overview {
  kind: string[];
  glyph: ("node" | "seed" | "module" | "optimizer" | "hook" | "retain" | "grad" | "exception" | "note")[];
  /** The index in ``views`` of the picture in which the player shows the step. */
  view: number[];
  /** The index of the step's hook in ``Content.hooks``; -1 if the step has none. */
  hook: number[];
  norm: (number | string | null)[];
  /** Step → the indices in ``Content.questions`` of the questions before it, which are asked one after the other. */
  questions: { [key: string]: number[] };
  /** The name of the top-level picture of each pass. */
  views: string[];
  /** The number of each pass. */
  pass_numbers: number[];
  /** The number at which each pass starts; empty if it is not known. */
  losses: string[];
}

/** The words of ``CHUNK_SIZE`` steps; the last chunk may have fewer. */
export interface StepsChunk {
  steps: StepWords[];
}

/** A picture made from an SVG template that several views share, and the texts that fill its holes. */
export interface SharedPicture {
  /** Pieces of the template: text, or an index into ``fill``. Missing if the view ``like`` has them. */
  pieces?: (string | number)[];
  /** The name of the view that has the pieces. */
  like?: string;
  fill: string[];
}

/** The pin of a hook in a picture. */
export interface HookPin {
  /** The index of the hook in ``Content.hooks``; -1 if it never ran. */
  hook: number;
  /** The id of the text that shows what the hook did. */
  value: string;
  /** Why the hook did not fire, and what to do; missing if it fired, or if the trace does not know it. */
  reason?: string;
}

/** A bar of a stack of equal module calls: it stands for one call, or for a few that follow one another. */
export interface StackBar {
  /** How many calls it stands for. */
  count: number;
  /** The name of the picture in which the first of them is opened. */
  view: string;
  /** The steps inside. */
  spans: [number, number][];
  /** (step, height from then on, from 0 to 1; -1 for a gradient with NaN or Inf) for each call. */
  heights: [number, number][];
}

/** A picture, and what it shows at each step. Elements are named by their ids in the SVG. */
export interface View {
  /** The picture as a template, or its index in ``Content.svgs``; -1 for no picture. */
  svg: number | SharedPicture;
  /** Element → the steps in which something happens to it. */
  steps: { [key: string]: number[] };
  /** Element → the steps that a click on it goes to, if these differ from ``steps``. */
  clicks: { [key: string]: number[] };
  /** Text element → what the steps write there. */
  texts: { [key: string]: [number, string, string[]][] };
  /** Step → further elements that are highlighted. */
  related: { [key: string]: string[] };
  /** Pin → its hook. */
  pins: { [key: string]: HookPin };
  /** Arrow of a gradient → the box at which it starts, and the box to which it points. */
  arrows: { [key: string]: [string, string] };
  /** A box that can be opened → the steps inside. */
  spans: { [key: string]: [number, number][] };
  /** Element → the name of the picture that a click on it opens. */
  links: { [key: string]: string };
  /** The box of a stack → its bars, in the order of the calls. */
  stacks: { [key: string]: StackBar[] };
  /** The steps that are inside what is opened in this picture; of the top-level picture, all. */
  visible_steps: [number, number][];
  /** (name, title) of each picture on the path from the top-level picture to this one. */
  breadcrumbs: [string, string][];
}

/** The search index: a column for each field of ``search_index.Entry``. */
export interface IndexChunk {
  kind: string[];
  label: string[];
  note: string[];
  number: number[];
  view: string[];
  steps: number[][];
}

/** A plot as a part of a page: an SVG whose marks lead to steps, and its numbers; or why there is none. */
export interface PlotChunk {
  markup: string;
}

/** A row of the table of firings. */
export interface FiringRow {
  step: number;
  hook: string;
  kind: string;
  on: string;
  change: string;
  effect: string;
  /** What the hook did: ``kept``, ``edited`` or ``replaced``, as in ``Step.effect``. */
  effect_kind: string;
  /** The name of the hook without its place. */
  name: string;
  /** Whether something has other numbers after the hook. */
  changed: boolean;
  /** What the hook did in a few letters, such as ``× 5``. */
  short: string;
}

/** A hook that did not fire, and why. */
export interface SilentHook {
  name: string;
  on: string;
  reason: string;
}

/** What is known of the hooks of a run. */
export interface HookFields {
  firings: FiringRow[];
  /** The steps in which a hook changed something. */
  changing: number[];
  silent: SilentHook[];
  /** How many calls of hooks changed something, looked, and which hooks did not fire; empty without hooks. */
  summary: string[];
}

/** One recorded run: an overview of its steps, its table of firings and its pictures. */
export interface RunContent {
  firings: FiringRow[];
  changing: number[];
  silent: SilentHook[];
  summary: string[];
  /** The name of the run; empty if there is only one. */
  label: string;
  /** The index of the run that this one is compared with. */
  baseline: number | null;
  notes: string[];
  /** The number of steps. */
  steps: number;
  overview: Overview | string;
  /** For each step the index of its words among the words of all runs; None if each step has its own. */
  word_indices: number[] | null;
  /** The index in ``Content.svgs`` of the picture of its last pass, which the static version of the player shows. */
  final_svg: number;
  /** The title of its last pass; empty if it has only one. */
  last_pass: string;
}

/** A hook: its name, location and source. */
export interface HookText {
  /** ``c_hook``; ``λ`` and its body for a lambda. */
  name: string;
  /** The file and the line of its source. */
  where: string;
  /** The text of its source. */
  source: string | null;
  /** Why there is no source; None if there is. */
  no_source: string | null;
  /** The line number of the first line of ``source``. */
  first_line: number | null;
  /** The line number of the ``return`` statement. */
  return_line: number | null;
}

/** A hook that can be switched off. */
export interface Switch {
  label: string;
  on: string;
  /** The indices of the hook in ``Content.hooks``. */
  hooks: number[];
}

/** One cause with what follows from it, and the step in which it begins. */
export interface FindingText {
  /** What is so. */
  text: string;
  /** Why it is so, and what to do. */
  more: string;
  /** What it is about in a few words, such as ``vanishing``. */
  name: string;
  /** Whether it says why hooks did not fire. */
  silent: boolean;
  step: number;
}

/** The parts of a player's initial state that differ from ``INITIAL``. */
export interface InitialState {
  shown?: number;
  split?: boolean;
  norms?: boolean;
}

/** The content of a player: one trace, or several runs of one program. */
export interface Content {
  runs: RunContent[];
  /** The number of steps whose words are in one chunk. */
  chunk_size: number;
  /** The chunks that are sent first: ``steps0`` …, the views by their names, ``index``, and ``plot0`` … */
  chunks: { [key: string]: StepsChunk | View | IndexChunk | PlotChunk | string };
  svgs: string[];
  /** Whether boxes are collapsed into groups, which can be opened. */
  grouped: boolean;
  /** The pictures with the tensors; empty if there are none. */
  layers: string;
  /** The names of the plots; the chunks ``plot0`` … hold them, or the kernel draws them. */
  plots: string[];
  /** What the player shows, as a phrase: the name of the player for screen readers. */
  about: string;
  /** The statement that started the pass, or the name of the script: the title of a page. */
  title: string;
  hooks: HookText[];
  questions: Question[];
  /** The user's code, which ``StepWords.code`` refers to. */
  sources: SourceText[];
  switches: Switch[];
  /** The indices of the switches that are off, separated by commas → the index of the run. */
  combinations: { [key: string]: number };
  /** The first step in which two compared runs differ; -1 for none. */
  first_difference: number;
  findings: FindingText[];
  /** The sentence to show if there are no findings. */
  no_finding: string;
  notes: string[];
  /** The labels, hints and messages of the player itself: key → text with ``{named}`` placeholders. */
  labels: { [key: string]: string };
  /** The language of all texts, such as ``en``. */
  language: string;
  /** Language → the same content in that language; empty if the kernel makes it when it is asked. */
  others: { [key: string]: string };
  initial_state: InitialState;
}

/** What the user has chosen. Each key is a trait of the widget, which Python can set and link. */
export interface PlayerState {
  step: number;
  playing: boolean;
  /** Whether playing goes from hook to hook. */
  hooks_only: boolean;
  speed: number;
  predict: boolean;
  /** Index of a question → 1 if the first answer was right, 0 if not, -1 if it was passed before predicting began. */
  answered: { [key: string]: number };
  asked: number;
  right: number;
  breakpoints: number[];
  large: boolean;
  tensors: boolean;
  norms: boolean;
  /** The index of the run that is shown. */
  shown: number;
  /** Whether a switch was flipped. If so, numbers are compared with the run with all hooks on. */
  flipped: boolean;
  split: boolean;
  /** The name of the element of a page that a player with a kernel replaces. */
  twin: string;
}

/** The state of a player in a page, with its content. */
export interface PageState {
  step: number;
  playing: boolean;
  hooks_only: boolean;
  speed: number;
  predict: boolean;
  answered: { [key: string]: number };
  asked: number;
  right: number;
  breakpoints: number[];
  large: boolean;
  tensors: boolean;
  norms: boolean;
  shown: number;
  flipped: boolean;
  split: boolean;
  twin: string;
  content: Content;
}

/** A request of the browser for a chunk. */
export interface ChunkRequest {
  chunk: string;
}

/** A request of the browser for the content in another language. */
export interface LanguageRequest {
  language: string;
}

/** The reply to a ``ChunkRequest``; ``packed`` is None if there is no such chunk. */
export interface ChunkReply {
  chunk: string;
  packed: string | null;
}
