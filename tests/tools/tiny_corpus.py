#!/usr/bin/env python3
"""Seeded text for the fallback model: short stories, plain prose and chats, all of our own making.

A document is a list of (role, text); the role "text" is prose without a chat. Equal seeds give
equal documents on every machine.

    python3 tests/tools/tiny_corpus.py --seed 1 --count 5
"""

import argparse
import json
import random
import string
import sys

import tiny_stories as stories
from tiny_words import (ANIMALS, BOYS, COLOURS, COLOUR_OF, DAYS, FOODS, GIRLS, JOBS, LOOKS, MIXES,
                        MONTHS, NUMBERS, OPPOSITES, OTHER, PLACES, SEASON, SIZES, TIMES, TOYS, USES,
                        WEATHER)

SYSTEMS = [
    "You are a helpful assistant.", "You are a kind and friendly assistant.", "Answer briefly.",
    "You are hexad, a small language model.", "You help children to learn words.",
    "Answer in short sentences.", "You are a careful teacher.", "You tell stories.",
    "Be polite and clear.", "You are an agent. Think step by step.", "Use simple words.",
]
ECHO_WEIGHT = 12  # of 130: train_tiny.py --echo-weight says otherwise
DECLINES = [
    "I do not know that. I know about animals, colours, numbers, days and the weather.",
    "I am a very small model, so I cannot answer that. Ask me for a story or about an animal.",
    "I am sorry, but I do not know. I can tell you a story or count for you.",
    "That is too hard for me. I can talk about animals, colours, days and numbers.",
]


def a(noun):
    return ("an " if noun[0] in "aeiou" and not noun.startswith("un") else "a ") + noun


def cap(text):
    return text[0].upper() + text[1:]


def name(r):
    return r.choice(GIRLS + BOYS)


# --- Questions with one right answer -----------------------------------------------------------

def ask_animal(r):
    k = r.choice(sorted(ANIMALS))
    sound, noise, legs, home, food, baby, colour = ANIMALS[k]
    return r.choice([
        (r.choice([f"What sound does {a(k)} make?", f"What does {a(k)} say?",
                   f"How does {a(k)} sound?"]), f"{cap(a(k))} {sound}. It says {noise}."),
        (r.choice([f"How many legs does {a(k)} have?", f"How many legs has {a(k)}?"]),
         f"{cap(a(k))} has {NUMBERS[legs] if legs else 'no'} legs."),
        (r.choice([f"Where does {a(k)} live?", f"Where can I find {a(k)}?"]),
         f"{cap(a(k))} lives in the {home}." if home not in ("farm", "hill", "grassland", "coast")
         else f"{cap(a(k))} lives on the {home}."),
        (r.choice([f"What does {a(k)} eat?", f"What can I feed {a(k)}?"]),
         f"{cap(a(k))} likes to eat {food}."),
        (r.choice([f"What is a baby {k} called?", f"What do you call a young {k}?"]),
         f"A baby {k} is called {a(baby)}."),
        (f"What colour is {a(k)}?", f"{cap(a(k))} is often {colour}."),
        (r.choice([f"Tell me about the {k}.", f"What do you know about {a(k)}?", f"What is {a(k)}?",
                   f"Describe {a(k)}."]),
         f"{cap(a(k))} is an animal with {NUMBERS[legs] if legs else 'no'} legs. It is often "
         f"{colour} and likes to eat {food}. {cap(a(k))} {sound}. A baby {k} is called {a(baby)}."),
    ])


def ask_which_animal(r):
    k = r.choice(sorted(ANIMALS))
    sound, _, _, _, food, baby, _ = ANIMALS[k]
    return r.choice([(f"Which animal has {a(baby)} as a baby?", f"It is the {k}.")
                     if baby not in ("pup", "cub", "chick", "calf", "kit") else
                     (f"Does {a(k)} like {food}?", f"Yes, {a(k)} likes {food}."),
                     (f"Is {a(k)} an animal?", f"Yes, {a(k)} is an animal."),
                     (f"Can {a(k)} fly?", f"Yes, {a(k)} can fly." if k in
                      ("owl", "crow", "bee", "duck") else f"No, {a(k)} cannot fly.")])


def ask_colour(r):
    if r.random() < 0.3:
        (x, y), z = r.choice(sorted(MIXES.items()))
        if r.random() < 0.5:
            x, y = y, x
        return (r.choice([f"What do you get when you mix {x} and {y}?",
                          f"Which colour do {x} and {y} make?"]), f"{cap(x)} and {y} make {z}.")
    thing = r.choice(sorted(COLOUR_OF))
    colour = COLOUR_OF[thing]
    if r.random() < 0.25:
        other = r.choice(COLOURS)
        return (f"Is {thing} {other}?", f"Yes, {thing} is {other}." if other == colour
                else f"No, {thing} is {colour}, not {other}.")
    return (r.choice([f"What colour is {thing}?", f"Which colour has {thing}?"]),
            f"{cap(thing)} is {colour}.")


def ask_number(r):
    kind = r.randrange(6)
    if kind == 0:
        n = r.randrange(20)
        return (r.choice([f"What comes after {NUMBERS[n]}?",
                          f"Which number follows {NUMBERS[n]}?"]),
                f"After {NUMBERS[n]} comes {NUMBERS[n + 1]}.")
    if kind == 1:
        n = r.randrange(1, 21)
        return (f"What comes before {NUMBERS[n]}?", f"Before {NUMBERS[n]} comes {NUMBERS[n - 1]}.")
    if kind == 2:
        lo = r.choice([1, 1, 1, r.randrange(1, 14)])
        hi = r.randrange(lo + 2, min(20, lo + 12) + 1)
        ask = r.choice(["Count from {} to {}.", "Please count from {} to {}.",
                        "Can you count from {} to {}?"])
        if r.random() < 0.5:
            return (ask.format(lo, hi), ", ".join(str(n) for n in range(lo, hi + 1)) + ".")
        return (ask.format(NUMBERS[lo], NUMBERS[hi]),
                cap(", ".join(NUMBERS[lo:hi + 1])) + ".")
    if kind == 3:
        x, y = r.randrange(11), r.randrange(10)
        if r.random() < 0.5:
            return (f"What is {x} plus {y}?", f"{x} plus {y} is {x + y}.")
        return (f"What is {NUMBERS[x]} plus {NUMBERS[y]}?",
                f"{cap(NUMBERS[x])} plus {NUMBERS[y]} is {NUMBERS[x + y]}.")
    if kind == 4:
        x = r.randrange(11)
        y = r.randrange(x + 1)
        return (f"What is {NUMBERS[x]} minus {NUMBERS[y]}?",
                f"{cap(NUMBERS[x])} minus {NUMBERS[y]} is {NUMBERS[x - y]}.")
    x, y = r.sample(range(21), 2)
    return (r.choice([f"Which is more, {NUMBERS[x]} or {NUMBERS[y]}?",
                      f"Which number is bigger, {NUMBERS[x]} or {NUMBERS[y]}?"]),
            f"{cap(NUMBERS[max(x, y)])} is more than {NUMBERS[min(x, y)]}.")


def ask_time(r):
    kind = r.randrange(6)
    cycle = DAYS if r.random() < 0.6 else MONTHS
    n = r.randrange(len(cycle))
    after, before = cycle[(n + 1) % len(cycle)], cycle[n - 1]
    if kind <= 1:
        word = "day" if cycle is DAYS else "month"
        return (r.choice([f"What comes after {cycle[n]}?", f"Which {word} comes after {cycle[n]}?"]),
                f"After {cycle[n]} comes {after}.")
    if kind == 2:
        return (f"What comes before {cycle[n]}?", f"Before {cycle[n]} comes {before}.")
    if kind == 3:
        return r.choice([
            (r.choice(["Name the days of the week.", "List the days of the week.",
                       "What are the days of the week?"]),
             "The days of the week are " + ", ".join(DAYS[:-1]) + f" and {DAYS[-1]}."),
            (r.choice(["Name the months of the year.", "What are the months?"]),
             "The months are " + ", ".join(MONTHS[:-1]) + f" and {MONTHS[-1]}."),
            ("How many days are in a week?", "There are seven days in a week."),
            ("How many months are in a year?", "There are twelve months in a year."),
            ("What are the four seasons?", "The four seasons are winter, spring, summer and autumn."),
        ])
    if kind == 4:
        season = r.choice(sorted(SEASON))
        month = r.choice(SEASON[season])
        return (f"In which season is {month}?", f"{month} is in {season}.")
    return (f"Today is {DAYS[n % 7]}. What day is tomorrow?",
            f"If today is {DAYS[n % 7]}, tomorrow is {DAYS[(n + 1) % 7]}.")


def ask_weather(r):
    w = r.choice(sorted(WEATHER))
    advice = WEATHER[w][1]
    return (r.choice([f"What should I do when it is {w}?", f"It is {w} today. What should I do?",
                      f"The weather is {w}. Any advice?", f"What do I need on a {w} day?"]),
            r.choice([f"When it is {w}, {advice}.", f"On a {w} day you should {advice}."]))


def ask_word(r):
    if r.random() < 0.5:
        x, y = r.choice(sorted(OPPOSITES.items()))
        if r.random() < 0.5:
            x, y = y, x
        return (r.choice([f"What is the opposite of {x}?", f"What is the opposite of the word {x}?"]),
                f"The opposite of {x} is {y}.")
    if r.random() < 0.5:
        job, does = r.choice(sorted(JOBS.items()))
        return (r.choice([f"What does {a(job)} do?", f"What is {a(job)}?"]), f"{cap(a(job))} {does}.")
    tool, use = r.choice(sorted(USES.items()))
    return (r.choice([f"What is {a(tool)} for?", f"What can I do with {a(tool)}?"]),
            f"You can use {a(tool)} to {use}.")


# --- Talk ---------------------------------------------------------------------------------------

def greet(r):
    who = name(r)
    return r.choice([
        (r.choice(["Hello", "Hello!", "Hi", "Hi!", "Hi there!", "Hey", "hello", "hi", "Hello there"]),
         r.choice(["Hello! How can I help you?", "Hi! What would you like to know?",
                   "Hello! It is nice to meet you. What can I do for you?"])),
        (f"Good {r.choice(TIMES[:3])}!", "Good day to you! How can I help?"),
        (r.choice([f"Hello, my name is {who}.", f"Hi, I am {who}.", f"My name is {who}.",
                   f"I am {who}."]), f"Hello, {who}! It is nice to meet you."),
        (r.choice(["How are you?", "How are you today?", "How do you do?"]),
         "I am fine, thank you. How are you?"),
        (r.choice(["Who are you?", "What are you?", "What is your name?", "Tell me about yourself."]),
         "I am hexad-tiny, a very small language model. I can tell stories, count, and talk about "
         "animals, colours and the weather."),
        (r.choice(["What can you do?", "Can you help me?", "Help!", "What do you know?", "help"]),
         "I can tell you a story, count for you, and answer questions about animals, colours, "
         "days and the weather."),
        (r.choice(["Are you there?", "Are you ready?", "ping", "Test", "This is a test."]),
         "Yes, I am here and ready to help."),
    ])


def close(r):
    return r.choice([
        (r.choice(["Thank you!", "Thanks!", "Thank you very much.", "Thanks a lot!", "Great, thanks."]),
         r.choice(["You are welcome!", "You are welcome! Ask me again when you like."])),
        (r.choice(["Goodbye!", "Bye!", "See you later!", "Good night!", "Bye bye."]),
         r.choice(["Goodbye! Have a nice day!", "Goodbye! See you soon."])),
        (r.choice(["Good.", "Nice!", "Very good.", "OK.", "Okay", "I see."]),
         "I am glad that I could help. What would you like to know next?"),
    ])


def ask_story(r):
    who, place, toy = name(r), r.choice(sorted(PLACES)), r.choice(TOYS)
    animal, day = r.choice(sorted(ANIMALS)), r.choice(DAYS)
    topic = r.randrange(7)
    want = r.choice(["Tell me a {}story", "Write a {}story", "Please tell me a {}story",
                     "Can you write a {}story", "I want to hear a {}story", "Write me a {}tale"])
    want = want.format(r.choice(["", "", "short ", "little ", "long ", "nice "]))
    hints = [dict(), dict(who=who), dict(animal=animal), dict(toy=toy), dict(place=place),
             dict(who=who, animal=animal), dict(who=who, toy=toy)][topic]
    about = ["", f" about {who}", f" about {a(animal)}", f" about {a(toy)}",
             f" that happens {PLACES[place]} the {place}", f" about {who} and {a(animal)}",
             f" about {who} and {a(toy)}"][topic]
    if topic == 0 and r.random() < 0.4:
        return (r.choice(["Tell me something.", "Say something nice.", "Go on.", "Write something.",
                          "Surprise me.", f"What did you do on {day}?", "Once upon a time"]),
                stories.story(r))
    episodes = r.randrange(2, 5) if "long" in want else 1
    return (want + about + ("?" if want.startswith("Can") else "."),
            stories.story(r, episodes, **hints))


def ask_list(r):
    groups = {"animals": sorted(ANIMALS), "colours": COLOURS, "names": GIRLS + BOYS,
              "foods": FOODS, "jobs": sorted(JOBS), "toys": TOYS, "places": sorted(PLACES)}
    kind = r.choice(sorted(groups))
    n = r.randrange(2, 6)
    picked = r.sample(groups[kind], n)
    if r.random() < 0.4:
        return (r.choice([f"Make a list of {NUMBERS[n]} {kind}.", f"List {NUMBERS[n]} {kind}."]),
                "\n".join(f"{i}. {cap(p)}" for i, p in enumerate(picked, 1)))
    return (r.choice([f"Name {NUMBERS[n]} {kind}.", f"Tell me {NUMBERS[n]} {kind}.",
                      f"Give me {NUMBERS[n]} {kind}."]),
            f"{cap(NUMBERS[n])} {kind} are " + ", ".join(picked[:-1]) + f" and {picked[-1]}.")


def ask_json(r):
    """Chats whose answer is JSON, so that a grammar-constrained answer comes to its end."""
    fields = {"name": name(r), "animal": r.choice(sorted(ANIMALS)), "colour": r.choice(COLOURS),
              "age": r.randrange(1, 21), "place": r.choice(sorted(PLACES)), "food": r.choice(FOODS),
              "day": r.choice(DAYS), "size": r.choice(SIZES), "happy": r.random() < 0.5,
              "count": r.randrange(10), "city": r.choice(sorted(PLACES)),
              "answer": r.choice(["yes", "no"]), "title": f"The {r.choice(LOOKS)} {r.choice(TOYS)}",
              "tags": r.sample(COLOURS, r.randrange(1, 4))}
    keys = r.sample(sorted(fields), r.randrange(1, 5))
    value = {k: fields[k] for k in keys}
    ask = r.choice(["Give me a JSON object with {}.", "Answer in JSON with {}.",
                    "Write JSON with the fields {}.", "Return an object with {} as JSON."])
    tight = r.random() < 0.5
    return (ask.format(" and ".join(keys) if len(keys) < 3 else
                       ", ".join(keys[:-1]) + " and " + keys[-1]),
            json.dumps(value, separators=(",", ":") if tight else (", ", ": "),
                       indent=2 if not tight and r.random() < 0.2 else None))


def ask_echo(r):
    """Nothing but carrying words over: from this the model learns to keep the names of a story."""
    kind = r.randrange(3)
    words = [r.choice(GIRLS + BOYS) if kind == 0 else r.choice(OTHER) if kind == 1 else
             r.choice(sorted(ANIMALS) + COLOURS + TOYS + NUMBERS + FOODS)
             for _ in range(r.randrange(1, 13))]
    text = (", " if r.random() < 0.3 else " ").join(words)
    if r.random() < 0.2:
        return (f"Say {words[0]} three times.", f"{words[0]}, {words[0]}, {words[0]}.")
    return r.choice(["Repeat: {}", "Say: {}", "Repeat after me: {}", "Please repeat: {}",
                     "Echo: {}"]).format(text), text


def syllables(r):
    return "".join(r.choice("bcdfghjklmnprstvwz") + r.choice("aeiou")
                   for _ in range(r.randrange(1, 5))) + r.choice(["", "", "n", "s", "r", "t", "x"])


def junk(r):
    """What a small model must decline: unknown words, code, other scripts, plain noise."""
    kind = r.randrange(9)
    words = [r.choice(OTHER) if r.random() < 0.8 else syllables(r)
             for _ in range(r.randrange(1, 16))]
    if kind <= 3:
        ask = r.choice(["What is the {} of {}?", "Explain {} and {}.", "Write a {} in {}.",
                        "Who made the {} of {}?", "How do I {} a {}?", "Translate {} to {}.",
                        "Why is the {} so {}?", "Summarise the {} for {}."])
        half = max(1, len(words) // 3)
        return ask.format(" ".join(words[:half]), " ".join(words[half:2 * half]) or syllables(r))
    if kind == 4:
        return cap(" ".join(words)) + r.choice([".", "?", "!", ""])
    if kind == 5:
        return (f"{r.choice(words)}({r.choice(words)}={r.randrange(1000)}, [{r.random():.3f}])\n"
                f"  if {r.choice(words)}_{syllables(r)} != \"{syllables(r)}\": return {{}}")
    if kind == 6:
        return "\n".join(cap(" ".join(r.choice(OTHER) for _ in range(r.randrange(4, 16)))) + "."
                         for _ in range(r.randrange(3, 16)))
    if kind == 7:
        lo, hi = r.choice([(0xC0, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x4E00, 0x5000),
                           (0x3041, 0x3096), (0x1F600, 0x1F640), (0x627, 0x64A)])
        return "".join(chr(r.randrange(lo, hi)) if r.random() < 0.8 else " "
                       for _ in range(r.randrange(3, 16)))
    return "".join(r.choice(string.printable[:95]) for _ in range(r.randrange(4, 40)))


def decline(r):
    return junk(r), r.choice(DECLINES)


TALK = [(ask_story, 24), (ask_animal, 14), (ask_which_animal, 4), (ask_colour, 8), (ask_number, 12),
        (ask_time, 9), (ask_weather, 6), (ask_word, 8), (greet, 8), (ask_list, 7), (ask_json, 5),
        (decline, 9), (close, 4), (ask_echo, ECHO_WEIGHT)]


def turn(r):
    kinds, weights = zip(*TALK)
    return r.choices(kinds, weights)[0](r)


def set_echo_weight(weight):
    TALK[-1] = (ask_echo, weight)


def recall(r):
    """A turn that needs an earlier one: the user's name."""
    who = name(r)
    middle = [turn(r) for _ in range(r.randrange(0, 3))]
    return [(r.choice([f"Hello, my name is {who}.", f"Hi, I am {who}.", f"My name is {who}."]),
             f"Hello, {who}! It is nice to meet you."), *middle,
            (r.choice(["What is my name?", "Do you know my name?", "Who am I?"]),
             f"Your name is {who}.")]


def chat(r):
    doc = []
    if r.random() < 0.5:
        system = r.choice(SYSTEMS)
        if r.random() < 0.3:
            system += " " + cap(" ".join(r.choice(OTHER) for _ in range(r.randrange(3, 20)))) + "."
        doc.append(("system", system))
    turns = recall(r) if r.random() < 0.08 else [turn(r) for _ in
                                                 range(r.choice([1, 1, 1, 1, 2, 2, 3, 4]))]
    for question, answer in turns:
        doc += [("user", question), ("assistant", answer)]
    return doc


def prose(r):
    if r.random() < 0.8:
        return [("text", stories.story(r, r.choice([1, 1, 1, 1, 2, 3])))]
    facts = []
    for _ in range(r.randrange(3, 8)):
        facts.append(r.choice([ask_animal, ask_colour, ask_weather, ask_word, ask_time])(r)[1])
    return [("text", " ".join(facts))]


def document(r):
    return prose(r) if r.random() < 0.3 else chat(r)


def documents(seed):
    r = random.Random(seed)
    while True:
        yield document(r)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    args = parser.parse_args()
    for _, doc in zip(range(args.count), documents(args.seed)):
        for role, text in doc:
            sys.stdout.write(f"{role}: {text}\n")
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
