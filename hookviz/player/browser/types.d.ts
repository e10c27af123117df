// What the parts of the player hand to each other. What comes from Python is in payload.d.ts.

import type { Language } from "./language.js";
import type { Content, FiringRow, Message, Norm, PageState, Chunk, ChunkRequest, Question, StepWords, View } from "./payload";

/** A model of anywidget, or the one of a page that only remembers: a value for each trait. */
export interface Model {
  get<Name extends keyof PageState>(name: Name): PageState[Name];
  set<Name extends keyof PageState>(name: Name, value: PageState[Name]): void;
  save_changes(): void;
  on(event: string, act: (message?: any) => void): void;
  off(event: string, act: (message?: any) => void): void;
  send?(request: ChunkRequest): void;
}

/** Traits with new values. */
export type Changes = Partial<PageState>;

/** One step of a run: what is known of it from the start, and its words once these have come. */
export interface Step {
  kind: string;
  glyph: string;
  /** The place of its picture among the run's. */
  picture: number;
  norm: Norm;
  /** The place of its hook among the content's; null for none. */
  hook: number | null;
  question: Question | null;
  words: StepWords | null;
}

/** A run whose outline is read. */
export interface LoadedRun {
  label: Message;
  notes: Message[];
  firings: FiringRow[];
  steps: Step[];
  /** The names of its outermost pictures. */
  views: string[];
  /** The name of the picture of all passes, or nothing. */
  overview: string;
  /** Fetches the words of a step; resolves to whether they are there. */
  fetchWords(step: number): Promise<boolean>;
}

/** Content whose runs are read, and the way to its parts. */
export interface LoadedContent {
  content: Content;
  language: Language;
  runs: LoadedRun[];
  /** A part by its name; null where it is not to be had. */
  fetchChunk(name: string): Promise<Chunk | null>;
}

/** Where the player stands. */
export interface Position {
  step: number;
  count: number;
  playing: boolean;
  speed: number;
}

/** May change where the driver goes, and hears when it is there. */
export interface Rule {
  limit(changes: Changes, position: Position): Changes;
  afterChange?(): void;
}

export interface Driver {
  position(): Position;
  goTo(step: number): void;
  /** Sets traits, through the rules. */
  setTraits(changes: Changes): void;
  /** Carries out a movement by its name. */
  move(action: string): void;
  onChange(events: string, act: () => void): void;
  rules: Rule[];
}

/** What every part of the player is given. */
export interface Context {
  model: Model;
  content: Content;
  fetchChunk: LoadedContent["fetchChunk"];
  language: Language;
  /** The run that is shown, and the one that it is compared with. */
  run: LoadedRun;
  baseline: LoadedRun | null;
  root: HTMLElement;
  driver: Driver;
  /** Ends when the player is taken away or shows something else. */
  signal: AbortSignal;
}

export type Actions = { [action: string]: () => void };

/** The ends of the scale of all norms above 0, and of the powers of ten that it covers. */
export interface Scale {
  low: number;
  high: number;
  from: number;
  to: number;
}

/** A box of the picture, on the timeline. */
export interface Band {
  title: string;
  spans: [number, number][];
}

export type { View };
