// The types that modules of the player share. The types of messages from Python are in payload.d.ts.

import type { Say } from "./labels.js";
import type {
  Content, FiringRow, LanguageRequest, Norm, PageState, Chunk, ChunkRequest, Question, SilentHook, StepWords, View,
} from "./payload";

/** The model of an anywidget, or of a player in a page: a value for each trait. */
export interface Model {
  get<Name extends keyof PageState>(name: Name): PageState[Name];
  set<Name extends keyof PageState>(name: Name, value: PageState[Name]): void;
  save_changes(): void;
  on(event: string, act: (message?: any) => void): void;
  off(event: string, act: (message?: any) => void): void;
  send?(request: ChunkRequest | LanguageRequest): void;
}

/** Traits with new values. */
export type Changes = Partial<PageState>;

/** A question with its index, under which its answer is kept. */
export type KeyedQuestion = Question & { key: number };

/** What a hook did: it looked, it changed something, it did not fire; `open`: that is not to be seen yet. */
export type Sign = "looked" | "changed" | "silent" | "open";

/** One step of a run: its overview, and its words once they are fetched. */
export interface Step {
  kind: string;
  glyph: string;
  /** What the hook of the step did; null for a step without one. */
  sign: Sign | null;
  /** The index in `views` of the picture that shows it. */
  view: number;
  norm: Norm;
  /** The index of its hook in `content.hooks`; null for none. */
  hook: number | null;
  /** The questions before it. */
  questions: KeyedQuestion[];
  words: StepWords | null;
}

/** A run whose overview is unpacked. */
export interface LoadedRun {
  label: string;
  notes: string[];
  firings: FiringRow[];
  /** The hooks that did not fire. */
  silent: SilentHook[];
  /** What all hooks did, in a few phrases. */
  summary: string[];
  steps: Step[];
  /** The name of the top-level picture of each pass. */
  views: string[];
  /** The number of each pass. */
  passNumbers: number[];
  /** The number at which each pass starts; empty if it is not known. */
  losses: string[];
  /** The name of the picture of all passes; empty if there is only one pass, or another run. */
  /** Fetches the words of a step; resolves to whether they exist. */
  fetchWords(step: number): Promise<boolean>;
}

/** Content whose runs are loaded, with a function that fetches its chunks. */
export interface LoadedContent {
  content: Content;
  say: Say;
  runs: LoadedRun[];
  /** Fetches a chunk by its name; resolves to null if there is none. */
  fetchChunk(name: string): Promise<Chunk | null>;
}

/** The position of the player. */
export interface Position {
  step: number;
  count: number;
  playing: boolean;
  /** Whether playing goes from hook to hook. */
  hooksOnly: boolean;
  speed: number;
}

/** A rule can limit a change of the driver, and is notified after it. */
export interface Rule {
  limit(changes: Changes, position: Position): Changes;
  afterChange?(): void;
}

export interface Driver {
  position(): Position;
  goTo(step: number): void;
  /** Sets traits, as far as the rules allow. */
  setTraits(changes: Changes): void;
  /** Carries out a movement by its name. */
  move(action: string): void;
  onChange(events: string, act: () => void): void;
  rules: Rule[];
}

/** The context that every part of the player gets. */
export interface Context {
  model: Model;
  content: Content;
  fetchChunk: LoadedContent["fetchChunk"];
  say: Say;
  /** The run that is shown, and the run that it is compared with. */
  run: LoadedRun;
  baseline: LoadedRun | null;
  root: HTMLElement;
  driver: Driver;
  /** Aborts when the player is removed or rebuilt. */
  signal: AbortSignal;
}

export type Actions = { [action: string]: () => void };

/** The smallest and largest norm above 0, and the exponents between which the scale runs. */
export interface Scale {
  low: number;
  high: number;
  from: number;
  to: number;
}

export type { View };
