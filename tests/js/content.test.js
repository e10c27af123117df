// Loading content: small content at once, large content chunk by chunk.

import assert from "node:assert/strict";
import { test } from "node:test";

import { loadContent, loadSvg } from "../../hookviz/player/browser/common/content.js";

const overview = (steps) => ({
  kind: steps.map(() => "arrive"),
  glyph: steps.map(() => "node"),
  view: steps.map(() => 0),
  hook: steps.map((hook) => hook),
  norm: steps.map(() => null),
  questions: { 1: [1, 0] },
  views: ["0/"],
});
const words = (...titles) => ({ steps: titles.map((title) => ({ title })) });
const run = (given) => ({ label: "", notes: [], firings: [], steps: 3, overview: overview([-1, 4, -1]), word_indices: null, ...given });
const questions = [{ text: "What comes out?" }, { text: "Which hook?" }];
const contentOf = (content) => ({ chunk_size: 2, labels: {}, questions, ...content });
const modelOf = (content, send) => ({ get: () => contentOf(content), on: () => {}, off: () => {}, send });
const open = (content, send) => loadContent(modelOf(content, send), new AbortController().signal);

test("words that were not sent are requested; without a kernel there are none", async () => {
  const asked = [];
  const { runs: [{ steps, fetchWords }] } = await open({ runs: [run()], chunks: { steps0: words("a", "b") } }, (request) => {
    asked.push(request);
    throw new Error("There is no kernel.");
  });
  assert.deepEqual([await fetchWords(0), await fetchWords(2)], [true, false]);
  assert.deepEqual(asked, [{ chunk: "steps1" }]);
  assert.equal(steps[2].words, null);
});

test("a picture is in the content, or is a template of another view, filled with its own ids and texts", async () => {
  const shared = { svg: { pieces: ["<g id=\"", 0, "\">", 1, "</g>"], fill: ["n1", "one"] } };
  const fetchChunk = async (name) => (name === "0/" ? shared : null);
  assert.equal(await loadSvg({ svg: 1 }, ["<a/>", "<b/>"], fetchChunk), "<b/>");
  assert.equal(await loadSvg(shared, [], fetchChunk), '<g id="n1">one</g>');
  assert.equal(await loadSvg({ svg: { like: "0/", fill: ["n9", "nine"] } }, [], fetchChunk), '<g id="n9">nine</g>');
  assert.equal(await loadSvg({ svg: { like: "7/", fill: ["n9"] } }, [], fetchChunk), undefined);
});
