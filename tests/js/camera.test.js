// Where a picture lies in its pane.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  contains, fitParts, joinFitting, limitScale, opensWhole, readableScale, reveal, surroundings,
} from "../../hookviz/player/browser/picture/camera.js";

const picture = { width: 500, height: 400, smallest: 10 };
const pane = { width: 624, height: 824 };
const small = { width: 224, height: 224 };

test("a picture opens whole if its letters are large enough, else at a readable size", () => {
  assert.equal(opensWhole(picture, { width: 474, height: 824 }, 9), true);
  assert.equal(opensWhole(picture, { width: 473, height: 824 }, 9), false);
  assert.equal(opensWhole(picture, { width: 5024, height: 5024 }, 18), false);
  assert.equal(opensWhole(picture, { width: 5024, height: 5024 }, 18, Infinity), true);
  assert.equal(readableScale(picture, small, 12), 1.2);
  assert.equal(readableScale(picture, { width: 824, height: 824 }, 12), 1.6);
});

test("zooming ends at the whole picture and at four times its size", () => {
  assert.equal(limitScale(0.1, picture, small), 0.4);
  assert.equal(limitScale(0.1, picture, pane), 1);
  assert.equal(limitScale(9, picture, pane), 4);
});

test("what is visible is not moved; a hidden part comes to the middle, and a larger one begins at the edge", () => {
  const camera = { scale: 1, x: 0, y: 0 };
  assert.deepEqual(reveal(camera, { x: 50, y: 60, width: 100, height: 50 }, small), camera);
  assert.deepEqual(reveal(camera, { x: 300, y: 60, width: 100, height: 50 }, small), { scale: 1, x: -238, y: 0 });
  assert.deepEqual(reveal(camera, { x: 0, y: 100, width: 224, height: 300 }, small), { scale: 1, x: 0, y: -76 });
});

test("around a part are the smallest frame that holds it, and the nearest box that does not", () => {
  const [net, layer] = [{ x: 0, y: 0, width: 500, height: 400 }, { x: 10, y: 10, width: 200, height: 200 }];
  const [node, near, far] = [20, 80, 300].map((x) => ({ x, y: 40, width: 50, height: 50 }));
  const hook = { x: 25, y: 50, width: 40, height: 20 };
  assert.equal(contains(layer, hook) && contains(hook, hook), true);
  assert.equal(contains(hook, layer), false);
  assert.deepEqual(surroundings(hook, { frames: [net, layer], boxes: [far, node, near] }), [layer, near]);
  assert.deepEqual(surroundings(hook, { frames: [], boxes: [node] }), [null]);
});

test("as many parts are joined as the pane has room for; of one around them that is too high, the width", () => {
  const [hook, near, far] = [50, 120, 400].map((x) => ({ x, y: 50, width: 40, height: 20 }));
  assert.deepEqual(joinFitting([hook, near, far], 1, small), { x: 50, y: 50, width: 110, height: 20 });
  assert.deepEqual(joinFitting([hook, { x: 0, y: 0, width: 200, height: 300 }], 1, small), { x: 0, y: 50, width: 200, height: 20 });
  assert.equal(joinFitting([], 1, small), null);
});

test("a picture shrinks until a hook and what is beside it fit, unless letters would be too small then", () => {
  const [near, far] = [250, 900].map((width) => ({ x: 0, y: 0, width, height: 40 }));
  assert.equal(fitParts(1, 0.7, [near, far], small), 0.8);
  assert.equal(fitParts(1, 0.7, [far], small), 1);
});
