// Made from hookviz/player/payload.py by `make bundle`: change that file, not this one.

/** A text that reads the same in every language, or a key with its arguments: named ones, or the items of a list. */
export type Message = string | [key: string, parts: { [name: string]: Message } | Message[]];

export type Norm = number | string | null;
export type Chunk = StepsChunk | ViewChunk | IndexChunk;

/** A question that is asked before a step. The answer is numbers, or one of several choices. */
export interface Question {
  text: Message;
  /** The index of the run that it is about. */
  run: number;
  /** The right numbers, separated by commas. */
  answer?: string;
  /** (wrong numbers, why they are wrong). */
  mistakes?: [string, Message][];
  choices?: Message[];
  /** The index of the right choice. */
  right?: number;
  /** Why each choice is wrong; empty for the right one. */
  reasons?: Message[];
  /** The index of the hook whose source is shown with it. */
  hook?: number;
}

/** Why a gradient has its value. */
export interface Reason {
  /** The formula with its values filled in. */
  text: Message;
  /** The formula as PyTorch's derivatives.yaml has it; may be empty. */
  source: string;
  note: Message;
}

/** A text of the user's code. */
export interface SourceText {
  /** Its file or notebook cell. */
  title: Message;
  text: string;
  /** The line number of the first line of ``text``. */
  first_line: number;
}

/** The texts that the panel shows at a step. */
export interface StepWords {
  title: Message;
  sentence: Message;
  /** Whether the step belongs to the forward pass. */
  forward: boolean;
  before: Message | null;
  after: Message | null;
  before_label: Message;
  after_label: Message;
  /** (source or target, gradient) for each gradient that arrives or is sent. */
  gradients: [Message, Message][];
  reasons?: Reason[];
  /** The line of the user's code that the step belongs to. */
  code?: [number, number | null, Message];
  /** The dict in which the hook is registered, and when the hook runs. */
  registration: Message;
  /** The hook that gets this gradient next. */
  next_hook: Message;
}

/** An overview of all steps, which is sent first: a column for each field. */
export interface Outline {
  kind: string[];
  glyph: ("node" | "seed" | "module" | "optimizer" | "hook" | "retain" | "grad" | "exception" | "note")[];
  /** The index of the step's picture in ``views``. */
  picture: number[];
  /** The index of the step's hook in ``Content.hooks``; -1 if the step has none. */
  hook: number[];
  norm: (number | string | null)[];
  /** Step → the indices in ``Content.questions`` of the questions before it, which are asked one after the other. */
  questions: { [key: string]: number[] };
  /** The name of the top-level picture of each pass. */
  views: string[];
}

/** The words of ``CHUNK_SIZE`` steps; the last chunk may have fewer. */
export interface StepsChunk {
  steps: StepWords[];
  words: { [key: string]: string };
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
  reason?: Message;
}

/** A picture, and what it shows at each step. Elements are named by their ids in the SVG. */
export interface View {
  /** The picture as a template, or its index in ``Content.svgs``; -1 for no picture. */
  svg: number | SharedPicture;
  /** Element → the steps in which something happens to it. */
  steps: { [key: string]: number[] };
  /** Element → the steps that a click on it goes to, if these differ from ``steps``. */
  clicks: { [key: string]: number[] };
  /** Text element → (step, its content from that step on). */
  texts: { [key: string]: [number, Message][] };
  /** Step → further elements that are highlighted. */
  related: { [key: string]: string[] };
  /** Pin → its hook. */
  pins: { [key: string]: HookPin };
  /** Arrow → the box at which it starts, and the box to which it points. */
  arrows: { [key: string]: [string, string] };
  /** A box that can be opened → the steps inside. */
  spans: { [key: string]: [number, number][] };
  /** Element → the name of the picture that a click on it opens. */
  links: { [key: string]: string };
  /** The steps that are shown in this picture or inside its boxes. */
  visible_steps: [number, number][];
  /** (name, title) of each picture on the path from the top-level picture to this one. */
  breadcrumbs: [string, Message][];
}

/** A view with the texts that it needs. */
export interface ViewChunk {
  svg: number | SharedPicture;
  steps: { [key: string]: number[] };
  clicks: { [key: string]: number[] };
  texts: { [key: string]: [number, Message][] };
  related: { [key: string]: string[] };
  pins: { [key: string]: HookPin };
  arrows: { [key: string]: [string, string] };
  spans: { [key: string]: [number, number][] };
  links: { [key: string]: string };
  visible_steps: [number, number][];
  breadcrumbs: [string, Message][];
  words: { [key: string]: string };
}

/** The search index: a column for each field of ``search_index.Entry``. */
export interface IndexChunk {
  kind: string[];
  label: Message[];
  note: Message[];
  number: number[];
  view: string[];
  steps: number[][];
  words: { [key: string]: string };
}

/** A row of the table of firings. */
export interface FiringRow {
  step: number;
  hook: string;
  kind: Message;
  on: Message;
  change: Message;
  effect: Message;
}

/** A row of the list of hooks that did not fire. */
export interface UnfiredText {
  /** The step that shows why; -1 if none does. */
  step: number;
  hook: string;
  kind: Message;
  on: Message;
  why: Message;
  advice: Message;
}

/** One recorded run: an overview of its steps, its table of firings and its pictures. */
export interface RunContent {
  /** The name of the run; empty if there is only one. */
  label: Message;
  /** The index of the run that this one is compared with. */
  baseline: number | null;
  notes: Message[];
  /** The number of steps. */
  steps: number;
  outline: Outline | string;
  /** For each step the index of its words among the words of all runs; None if each step has its own. */
  word_indices: number[] | null;
  firings: FiringRow[];
  /** The hooks that did not fire; missing if there are none, and in all runs but the first. */
  unfired?: UnfiredText[];
  /** How many more there are; missing if all are listed. */
  unfired_more?: Message;
  /** The index in ``Content.svgs`` of the picture of its last pass, which the static version of the player shows. */
  picture: number;
  /** The title of its last pass; missing if it has only one. */
  last_pass?: Message;
}

/** A hook: its name, location and source. */
export interface HookText {
  /** ``c_hook``; ``λ`` and its body for a lambda. */
  name: string;
  /** The file and the line of its source, as a text or as the key of a text with its arguments. */
  where: Message;
  /** The text of its source. */
  source: string | null;
  /** Why there is no source; None if there is. */
  no_source: Message | null;
  /** The line number of the first line of ``source``. */
  first_line: number | null;
  /** The line number of the ``return`` statement. */
  return_line: number | null;
}

/** A hook that can be switched off. */
export interface Switch {
  label: string;
  on: Message;
  /** The indices of the hook in ``Content.hooks``. */
  hooks: number[];
}

/** A problem with the gradients, and the step in which it begins. */
export interface FindingText {
  text: Message;
  step: number;
  /** Whether it is about a hook in the list of those that did not fire. */
  unfired?: boolean;
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
  /** The chunks that are sent first: ``steps0`` …, the views by their names, and ``index``. */
  chunks: { [key: string]: StepsChunk | ViewChunk | IndexChunk | string };
  svgs: string[];
  /** Whether boxes are collapsed into groups, which can be opened. */
  grouped: boolean;
  /** The pictures with the nodes' lists of pre-hooks, and with the tensors; empty if there are none. */
  layers: string;
  /** What the player shows, as a phrase: the name of the player for screen readers. */
  about: Message;
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
  no_finding: Message;
  notes: Message[];
  words: { [key: string]: string };
  /** The language of ``words`` and of the pictures, such as ``en``. */
  language: string;
  /** Language → the same content in that language; empty if the kernel makes it when it is asked. */
  others: { [key: string]: string };
  initial_state: InitialState;
}

/** What the user has chosen. Each key is a trait of the widget, which Python can set and link. */
export interface PlayerState {
  step: number;
  playing: boolean;
  speed: number;
  predict: boolean;
  /** Index of a question → 1 if the first answer was right, 0 if not, -1 if it was passed before predicting began. */
  answered: { [key: string]: number };
  asked: number;
  right: number;
  breakpoints: number[];
  large: boolean;
  tensors: boolean;
  nodes: boolean;
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
  speed: number;
  predict: boolean;
  answered: { [key: string]: number };
  asked: number;
  right: number;
  breakpoints: number[];
  large: boolean;
  tensors: boolean;
  nodes: boolean;
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
