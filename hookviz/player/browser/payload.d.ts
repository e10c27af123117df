// Made from hookviz/player/payload.py by `make bundle`: change that file, not this one.

/** A text that reads the same in every language, or a key with its arguments: named ones, or the items of a list. */
export type Message = string | [key: string, parts: { [name: string]: Message } | Message[]];

export type Norm = number | string | null;
export type Part = StepsPart | ViewPart | IndexPart;

/** What is asked before a step: for numbers, or for one of several choices. */
export interface Question {
  text: Message;
  /** The right numbers, with commas between. */
  answer?: string;
  /** (wrong numbers, why they are wrong) */
  mistakes?: [string, Message][];
  choices?: Message[];
  /** The place of the right choice. */
  right?: number;
  /** For each choice why it is wrong; empty for the right one. */
  reasons?: Message[];
  /** Whether the hook's source may be seen with the choices. */
  shows_source?: boolean;
}

/** Why a gradient is what it is. */
export interface Reason {
  /** The formula, with the values in it. */
  text: Message;
  /** PyTorch's own text of the formula; may be empty. */
  source: string;
  note: Message;
}

/** What the panel shows of a step. */
export interface StepWords {
  title: Message;
  sentence: Message;
  /** Whether it belongs to the forward pass. */
  forward: boolean;
  before: Message | null;
  after: Message | null;
  before_label: Message;
  after_label: Message;
  /** (where from or where to, the gradient) */
  parts: [Message, Message][];
  why?: Reason[];
  /** Where the hook is kept, and when it runs. */
  kept: Message;
  /** Which hook sees this gradient next. */
  next: Message;
}

/** What is known of all steps from the start: a column for each thing. */
export interface Outline {
  kind: string[];
  glyph: ("node" | "seed" | "module" | "optimizer" | "hook" | "retain" | "grad" | "exception" | "note")[];
  /** The place of the step's picture in ``views``. */
  picture: number[];
  /** The place of the step's hook in ``Content.hooks``; -1 for none. */
  hook: number[];
  norm: (number | string | null)[];
  /** Step → what is asked before it. */
  questions: { [key: string]: Question };
  /** The names of the outermost pictures, one for each pass. */
  views: string[];
  /** The name of the picture of all passes; empty where there is none. */
  overview: string;
}

/** The words of ``CHUNK_SIZE`` steps, or of fewer at the end. */
export interface StepsPart {
  steps: StepWords[];
  words: { [key: string]: string };
}

/** A picture of a structure that several views share: the pieces of its SVG, and what fills the holes in them. */
export interface SharedPicture {
  /** Text, or a place in ``fill``. Missing where the view ``like`` has them. */
  pieces?: (string | number)[];
  like?: string;
  fill: string[];
}

/** A hook in a picture. */
export interface HookPin {
  /** Its place in ``Content.hooks``; -1 where it never ran. */
  hook: number;
  /** The id of the text that says what it did. */
  value: string;
}

/** A picture, and what is shown in it at which step. Elements go by their ids in the SVG. */
export interface View {
  /** The picture, or its place in ``Content.svgs``; -1 for none. */
  svg: number | string | SharedPicture;
  /** Element → the steps that are about it. */
  steps: { [key: string]: number[] };
  /** Element → the steps that a click on it leads to, where those are others. */
  clicks: { [key: string]: number[] };
  /** Text → (step, what it says from then on). */
  texts: { [key: string]: [number, Message][] };
  /** Step → elements that it concerns as well. */
  near: { [key: string]: string[] };
  pins: { [key: string]: HookPin };
  /** A box that can be entered → the steps inside. */
  spans: { [key: string]: [number, number][] };
  /** What leads to another picture, when it is clicked → that picture's name. */
  doors: { [key: string]: string };
  /** The steps that are seen in this picture, or inside its boxes. */
  own: [number, number][];
  /** (name, title) of the pictures around this one, the outermost first, and of this one. */
  trail: [string, Message][];
}

/** A view that is sent alone. */
export interface ViewPart {
  svg: number | string | SharedPicture;
  steps: { [key: string]: number[] };
  clicks: { [key: string]: number[] };
  texts: { [key: string]: [number, Message][] };
  near: { [key: string]: string[] };
  pins: { [key: string]: HookPin };
  spans: { [key: string]: [number, number][] };
  doors: { [key: string]: string };
  own: [number, number][];
  trail: [string, Message][];
  words: { [key: string]: string };
}

/** What can be searched for: a column for each field of ``search_index.Entry``. */
export interface IndexPart {
  kind: string[];
  label: Message[];
  note: Message[];
  number: number[];
  view: string[];
  steps: number[][];
  words: { [key: string]: string };
}

/** A row of the table of hooks. */
export interface FiringRow {
  step: number;
  hook: string;
  kind: Message;
  on: Message;
  change: Message;
  effect: Message;
}

/** One recorded program: its steps, and how they are shown. */
export interface RunContent {
  /** Which one it is, where there are several. */
  label: Message;
  /** The place of the run that its numbers are compared with. */
  beside: number | null;
  notes: Message[];
  /** How many there are. */
  steps: number;
  outline: Outline | string;
  /** For each step the place of its words among those of all runs; None where each step has its own. */
  told: number[] | null;
  firings: FiringRow[];
  /** The places in ``Content.svgs`` of the pictures that it opens with. */
  pictures: number[];
}

/** A hook: what it is called, and where and how it was written. */
export interface HookText {
  name: string;
  where: Message;
  source: string | null;
  /** What stands in the place of a source that there is not. */
  missing: Message | null;
  /** The number of the source's first line. */
  first: number | null;
  /** The number of the line that returns. */
  mark: number | null;
}

/** A hook that can be switched off. */
export interface Switch {
  label: string;
  on: Message;
  /** Its places in ``Content.hooks``. */
  hooks: number[];
}

/** Something that is wrong with the gradients, and the step where it begins. */
export interface FindingText {
  text: Message;
  step: number;
}

/** How a player opens, where that is not as ``INITIAL`` has it. */
export interface Opening {
  shown?: number;
  split?: boolean;
  norms?: boolean;
}

/** All that a player shows: a trace, or several passes of one program. */
export interface Content {
  runs: RunContent[];
  /** How many steps' words are in one part. */
  chunk: number;
  /** The parts that are there from the start: ``steps0`` …, the views by their names, and ``index``. */
  parts: { [key: string]: StepsPart | ViewPart | IndexPart | string };
  svgs: string[];
  /** Whether boxes are put together into groups, which can be entered. */
  grouped: boolean;
  /** The same pictures with the nodes' lists of pre-hooks, and with the tensors; empty where there are none. */
  layers: string;
  hooks: HookText[];
  switches: Switch[];
  /** Which switches are off, by their places with commas between → the run that shows it. */
  combinations: { [key: string]: number };
  /** The step where a difference begins; -1 for none. */
  mark: number;
  findings: FindingText[];
  /** What to say where nothing was found. */
  no_finding: Message;
  notes: Message[];
  words: { [key: string]: string };
  opening: Opening;
}

/** What a person has chosen; a trait of the widget for each, which Python can set and link. */
export interface PlayerState {
  step: number;
  playing: boolean;
  speed: number;
  predict: boolean;
  /** Step → 1 where the question before it was answered right at once, else 0. */
  answered: { [key: string]: number };
  asked: number;
  right: number;
  breakpoints: number[];
  large: boolean;
  tensors: boolean;
  nodes: boolean;
  norms: boolean;
  /** The place of the run that is shown. */
  shown: number;
  /** Whether a switch was flipped: from then on numbers are compared with those of every hook on. */
  flipped: boolean;
  split: boolean;
  /** What the place in a page is called that a living player takes. */
  twin: string;
}

/** What a player in a page is given. */
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

/** The browser asks for a part that it has not. */
export interface PartRequest {
  part: string;
}

/** The answer; ``packed`` is None where there is no such part. */
export interface PartReply {
  part: string;
  packed: string | null;
}
