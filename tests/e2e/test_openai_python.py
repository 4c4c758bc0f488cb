"""The official Python client, unchanged, against the daemon."""
import concurrent.futures

import openai
import pytest

from daemon import MODEL, metric

QUESTION = [{"role": "user", "content": "Tell me a story about a cat."}]


def text_of(stream):
    chunks = list(stream)
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices), chunks


def test_models(client):
    models = client.models.list().data
    assert [m.id for m in models] == [MODEL]
    model = client.models.retrieve(MODEL)
    assert model.object == "model" and model.created > 0
    assert model.max_model_len >= 512


def test_chat_is_words(client):
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0,
                                            max_tokens=48)
    choice = answer.choices[0]
    assert answer.object == "chat.completion"
    assert choice.message.role == "assistant"
    assert choice.finish_reason in ("stop", "length")
    words = choice.message.content.split()
    assert len(words) >= 5 and all(w.isascii() for w in words), choice.message.content
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert isinstance(usage.prompt_tokens_details.cached_tokens, int)


def test_an_answer_ends_by_itself(client):
    """At the model's end of sequence, which is no part of the text; ignore_eos goes past it."""
    options = dict(model=MODEL, messages=[{"role": "user", "content": "Who are you?"}],
                   temperature=0, max_tokens=400)
    answer = client.chat.completions.create(**options)
    assert answer.choices[0].finish_reason == "stop"
    assert 0 < answer.usage.completion_tokens < 400
    assert "<|" not in answer.choices[0].message.content
    _, chunks = text_of(client.chat.completions.create(stream=True, **options))
    assert [c.choices[0].finish_reason for c in chunks][-1] == "stop"
    past = client.chat.completions.create(extra_body={"ignore_eos": True}, **options)
    assert past.choices[0].finish_reason == "length"
    assert past.usage.completion_tokens == 400
    assert past.choices[0].message.content.startswith(answer.choices[0].message.content)


@pytest.mark.parametrize("options", [
    {"max_tokens": 1}, {"max_tokens": 30}, {"n": 3, "max_tokens": 9}, {"stop": "e"},
    {"max_tokens": 400}])
def test_metrics_count_the_tokens_of_the_answers(client, http, options):
    name = "vllm:generation_tokens_total"
    before = metric(http.get("/metrics").text, name)
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, seed=5, **options)
    assert metric(http.get("/metrics").text, name) - before == answer.usage.completion_tokens


def test_stream_says_the_same_as_one_answer(client):
    options = dict(model=MODEL, messages=QUESTION, temperature=0, max_tokens=40)
    whole = client.chat.completions.create(**options)
    text, chunks = text_of(client.chat.completions.create(
        stream=True, stream_options={"include_usage": True}, **options))
    assert text == whole.choices[0].message.content
    assert len({c.id for c in chunks}) == 1 and len({c.created for c in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[0].choices[0].delta.content == ""
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens \
        == whole.usage.completion_tokens
    last = chunks[-2].choices[0]
    assert last.finish_reason == whole.choices[0].finish_reason and not last.delta.content
    assert all(c.usage is None for c in chunks[:-1])


def test_without_include_usage_no_usage(client):
    _, chunks = text_of(client.chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=3, stream=True))
    assert all(c.usage is None and c.choices for c in chunks)


def test_second_turn_is_cached(client):
    messages = [{"role": "user", "content": "Tell me a long story about two dogs and a bird. " * 3}]
    client.chat.completions.create(model=MODEL, messages=messages, temperature=0, max_tokens=4)
    again = client.chat.completions.create(model=MODEL, messages=messages, temperature=0,
                                           max_tokens=4)
    cached = again.usage.prompt_tokens_details.cached_tokens
    assert 0 < cached < again.usage.prompt_tokens and cached % 16 == 0


def test_stop_string_is_not_returned(client):
    options = dict(model=MODEL, messages=QUESTION, temperature=0, max_tokens=40)
    whole = client.chat.completions.create(**options).choices[0].message.content
    stop = whole.split()[4]
    cut = client.chat.completions.create(stop=[stop, "never appears"], **options)
    assert cut.choices[0].message.content == whole[:whole.index(stop)]
    assert cut.choices[0].finish_reason == "stop"
    text, _ = text_of(client.chat.completions.create(stop=stop, stream=True, **options))
    assert text == whole[:whole.index(stop)]


def test_seed_repeats_under_load(client):
    options = dict(model=MODEL, messages=QUESTION, temperature=1, max_tokens=24, seed=7)
    alone = client.chat.completions.create(**options).choices[0].message.content
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        jobs = [pool.submit(client.chat.completions.create, **{**options, "seed": seed})
                for seed in [7, 1, 2, 3, 7, 4, 5, 6, 7, 8, 9, 10]]
        answers = [job.result().choices[0].message.content for job in jobs]
    assert answers[0] == answers[4] == answers[8] == alone
    assert len(set(answers)) > 4


def test_several_choices(client):
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, n=3, temperature=1,
                                            seed=3, max_tokens=12)
    assert [c.index for c in answer.choices] == [0, 1, 2]
    chunks = list(client.chat.completions.create(model=MODEL, messages=QUESTION, n=3, seed=3,
                                                 temperature=1, max_tokens=12, stream=True))
    texts = ["", "", ""]
    ends = []
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            if choice.finish_reason:
                ends.append(choice.index)
    assert sorted(ends) == [0, 1, 2]
    assert texts == [c.message.content for c in answer.choices]


def test_logprobs(client):
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0,
                                            max_tokens=6, logprobs=True, top_logprobs=3)
    content = answer.choices[0].logprobs.content
    assert len(content) == answer.usage.completion_tokens
    for entry in content:
        assert entry.logprob <= 0 and len(entry.top_logprobs) == 3
        assert entry.token == entry.top_logprobs[0].token  # greedy takes the most likely
        assert entry.logprob == pytest.approx(entry.top_logprobs[0].logprob)
    joined = b"".join(bytes(e.bytes) for e in content).decode()
    assert joined.startswith(answer.choices[0].message.content)


def test_thirty_two_streams_at_once(client):
    def one(i):
        text, chunks = text_of(client.chat.completions.create(
            model=MODEL, stream=True, temperature=0, max_tokens=20,
            messages=[{"role": "user", "content": f"Count to {i % 4 + 3}."}]))
        assert chunks[-1].choices[0].finish_reason
        return i % 4, text

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(one, range(32)))
    for kind in range(4):
        assert len({text for k, text in answers if k == kind}) == 1


def test_unknown_model_is_404(client):
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="gpt-unknown", messages=QUESTION)
    assert error.value.code == "model_not_found" and MODEL in error.value.message
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-unknown")


@pytest.mark.parametrize("field,value", [
    ("temperature", 3), ("temperature", -0.1), ("top_p", 2), ("n", 0), ("n", 1000),
    ("max_tokens", 0), ("presence_penalty", 9), ("stop", ["a", "b", "c", "d", "e"]),
    ("top_logprobs", 5), ("logit_bias", {"999999999": 1}), ("messages", []),
    ("messages", [{"role": "wizard", "content": "x"}]),
])
def test_out_of_range_is_400_with_param(client, field, value):
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(**{"model": MODEL, "messages": QUESTION, field: value})
    assert (error.value.param or "").startswith(field), error.value.body
    assert error.value.type == "invalid_request_error"


@pytest.mark.parametrize("extra", [
    {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
    {"response_format": {"type": "json_object"}},
])
def test_what_is_not_supported_says_so(client, extra):
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model=MODEL, messages=QUESTION, **extra)
    assert error.value.param.split(".")[0] == next(iter(extra))


def test_too_long_prompt_is_400_with_both_numbers(client):
    limit = client.models.retrieve(MODEL).max_model_len
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model=MODEL, messages=[
            {"role": "user", "content": "one two three " * limit}])
    assert error.value.code == "context_length_exceeded" and error.value.param == "messages"
    assert str(limit) in error.value.message


def test_too_large_a_body_is_413(client):
    with pytest.raises(openai.APIStatusError) as error:
        client.chat.completions.create(model=MODEL, messages=[
            {"role": "user", "content": "x" * (2 << 20)}])
    assert error.value.status_code == 413


def test_abort_in_mid_stream_frees_the_request(client, http):
    stream = client.chat.completions.create(model=MODEL, messages=QUESTION, stream=True,
                                            max_tokens=400, extra_body={
                                                "ignore_eos": True, "min_tokens": 400})
    for _ in zip(range(3), stream):
        pass
    stream.close()
    for _ in range(200):  # its last step may still run, and holds its blocks until it ends
        text = http.get("/metrics").text
        if (metric(text, "vllm:num_requests_running") == 0
                and metric(text, "vllm:kv_cache_usage_perc") == 0):
            break
    assert metric(text, "vllm:num_requests_running") == 0
    assert metric(text, "vllm:kv_cache_usage_perc") == 0
