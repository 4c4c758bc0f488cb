// The official Node client, unchanged, against the daemon at HEXAD_URL.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";

const require = createRequire(process.env.HEXAD_NODE_MODULES + "/");
const OpenAI = require("openai").default;
const model = process.env.HEXAD_MODEL;
const client = new OpenAI({ baseURL: process.env.HEXAD_URL + "/v1", apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "Tell me a story about a dog." }];

test("models", async () => {
  const ids = [];
  for await (const entry of client.models.list()) ids.push(entry.id);
  assert.deepEqual(ids, [model]);
  assert.equal((await client.models.retrieve(model)).object, "model");
});

test("chat and stream agree, usage comes last", async () => {
  const options = { model, messages, temperature: 0, max_tokens: 32 };
  const whole = await client.chat.completions.create(options);
  const stream = await client.chat.completions.create({
    ...options, stream: true, stream_options: { include_usage: true },
  });
  let text = "";
  let usage = null;
  let finish = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? "";
    finish = chunk.choices[0]?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(finish, whole.choices[0].finish_reason);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
});

test("stop and seed", async () => {
  const options = { model, messages, temperature: 1, seed: 11, max_tokens: 24 };
  const first = await client.chat.completions.create(options);
  const second = await client.chat.completions.create(options);
  assert.equal(first.choices[0].message.content, second.choices[0].message.content);
  const stopped = await client.chat.completions.create({ ...options, stop: " " });
  assert.ok(!stopped.choices[0].message.content.includes(" "));
});

test("errors are typed", async () => {
  await assert.rejects(client.chat.completions.create({ model: "nope", messages }),
    (e) => e instanceof OpenAI.NotFoundError && e.code === "model_not_found");
  await assert.rejects(client.chat.completions.create({ model, messages, temperature: 5 }),
    (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
});

test("abort in mid-stream", async () => {
  const stream = await client.chat.completions.create({
    model, messages, stream: true, max_tokens: 400, min_tokens: 400, ignore_eos: true,
  });
  let chunks = 0;
  for await (const chunk of stream) {
    assert.ok(chunk.choices);
    if (++chunks === 3) break;
  }
  stream.controller.abort();
  assert.equal(chunks, 3);
});

test("32 streams at once", async () => {
  const one = async (i) => {
    let text = "";
    const stream = await client.chat.completions.create({
      model, stream: true, temperature: 0, max_tokens: 16,
      messages: [{ role: "user", content: `Count to ${(i % 4) + 3}.` }],
    });
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
    return text;
  };
  const texts = await Promise.all([...Array(32).keys()].map(one));
  for (let kind = 0; kind < 4; kind++) {
    assert.equal(new Set(texts.filter((_, i) => i % 4 === kind)).size, 1);
  }
});
