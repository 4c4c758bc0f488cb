"""Short stories from a seeded grammar. A story keeps its hero, friend, thing and place throughout:
that is what the model must learn to carry from sentence to sentence."""

from tiny_words import (ANIMALS, BOYS, COLOURS, DAYS, FOODS, GIRLS, HIDING, LOOKS, MOODS, PLACES,
                        SIZES, TIMES, TOYS, TRAITS, WEATHER)


def _a(noun):
    return ("an " if noun[0] in "aeiou" and not noun.startswith("un") else "a ") + noun


def _cap(text):
    return text[0].upper() + text[1:]


class Person:
    def __init__(self, r, name=None, exclude=None):
        self.name = name or r.choice([n for n in GIRLS + BOYS if n != exclude])
        girl = self.name in GIRLS
        self.he, self.his, self.him = ("she", "her", "her") if girl else ("he", "his", "him")
        self.He = _cap(self.he)
        self.kind = "girl" if girl else "boy"


class Cast:
    """What a story is about; every sentence below draws on it."""

    def __init__(self, r, who=None, animal=None, toy=None, place=None):
        self.hero = Person(r, who)
        self.friend = Person(r, exclude=self.hero.name)
        self.animal = animal or r.choice(sorted(ANIMALS))
        self.toy = toy or r.choice(TOYS)
        self.colour = r.choice(COLOURS)
        self.look = r.choice(LOOKS + SIZES)
        self.place = place or r.choice(sorted(PLACES))
        self.at = f"{PLACES[self.place]} the {self.place}"
        self.food = r.choice(FOODS)
        self.pet = r.choice(GIRLS + BOYS)
        while self.pet in (self.hero.name, self.friend.name):
            self.pet = r.choice(GIRLS + BOYS)


def opening(r, c):
    h = c.hero
    trait = r.choice(TRAITS)
    return r.choice([
        f"Once upon a time there was {_a(trait)} {h.kind} named {h.name}.",
        f"Once there was {_a(trait)} {h.kind} called {h.name}.",
        f"{h.name} was {_a(trait)} {h.kind} who lived near the {c.place}.",
        f"One {r.choice(TIMES)}, {h.name} went to the {c.place}.",
        f"On {r.choice(DAYS)}, {h.name} woke up early.",
        f"In a small village there lived {_a(trait)} {h.kind}. {_cap(h.his)} name "
        f"was {h.name}.",
        f"{h.name} and {c.friend.name} were good friends.",
    ])


def setting(r, c):
    h = c.hero
    weather = WEATHER[r.choice(sorted(WEATHER))][0]
    return r.choice([
        f"{weather}, and {h.name} was {r.choice(MOODS)}.",
        f"It was a quiet {r.choice(TIMES)}. {weather}.",
        f"{weather} when {h.he} came to the {c.place}.",
        f"{h.He} liked to play {c.at}.",
        f"Every {r.choice(DAYS)}, {h.he} walked to the {c.place}.",
        "",
    ])


def lost_and_found(r, c):
    h, f = c.hero, c.friend
    hiding = r.choice(HIDING)
    return [
        r.choice([f"{h.name} had {_a(c.look)} {c.colour} {c.toy}.",
                  f"{h.He} loved {h.his} {c.look} {c.colour} {c.toy} very much."]),
        r.choice([f"One day the {c.toy} was gone.", f"But one day {h.he} could not find the {c.toy}.",
                  f"Then the {c.toy} was lost."]),
        r.choice([f"{h.name} was sad and looked everywhere.",
                  f"{h.He} looked in the house and in the garden, but it was not there.",
                  f"{h.name} began to cry."]),
        r.choice([f'"I will help you," said {f.name}.',
                  f'{f.name} asked, "Why are you sad?" "I lost my {c.toy}," said {h.name}.',
                  f"{_cap(h.his)} friend {f.name} came to help."]),
        r.choice([f"They looked together and found the {c.toy} {hiding}.",
                  f"At last {f.name} found the {c.toy} {hiding}.",
                  f"After a long time they saw something {c.colour} {hiding}. It was the {c.toy}!"]),
        r.choice([f'"Thank you, {f.name}!" said {h.name}.', f"{h.name} was very happy again.",
                  f"{h.name} gave {f.name} a big hug."]),
    ]


def meet_animal(r, c):
    h = c.hero
    sound, noise, _, home, food, baby, _ = ANIMALS[c.animal]
    return [
        r.choice([f"{c.at.capitalize()} {h.he} met {_a(c.look)} {c.animal}.",
                  f"There {h.he} saw {_a(c.look)} {c.colour} {c.animal}.",
                  f"Suddenly {h.he} heard a sound. It was {_a(c.animal)}!"]),
        r.choice([f'"{_cap(noise)}!" said the {c.animal}.', f"The {c.animal} was {r.choice(MOODS)}.",
                  f'"Hello," said {h.name}. "What is your name?"']),
        r.choice([f"The {c.animal} was hungry, so {h.name} gave it some {food}.",
                  f"{h.name} sat down and shared some {food} with the {c.animal}.",
                  f'"Are you hungry?" asked {h.name}. The {c.animal} ate all the {food}.']),
        r.choice([f"{h.He} named the {c.animal} {c.pet}.", f"The {c.animal} showed {h.him} its {baby}.",
                  f"Then they played together until it was dark.",
                  f"The {c.animal} wanted to go back to the {home}."]),
        r.choice([f"From that day on, {h.name} and the {c.animal} were friends.",
                  f"The {c.animal} followed {h.name} all the way home.",
                  f'"Come back tomorrow," said {h.name} to the {c.animal}.']),
    ]


def make_food(r, c):
    h, f = c.hero, c.friend
    return [
        r.choice([f"{h.name} wanted to make {c.food}.", f"{h.He} was hungry and wanted {c.food}.",
                  f"Today was the birthday of {f.name}, so {h.name} made {c.food}."]),
        r.choice([f"{h.He} went to the market and bought what {h.he} needed.",
                  f"First {h.he} washed {h.his} hands.",
                  f'"Can I help you?" asked {f.name}.']),
        r.choice([f"They worked {r.choice(['all day', 'for an hour', 'all morning'])}.",
                  f"Soon the whole house smelled good.",
                  f"It was hard work, but {h.name} did not stop."]),
        r.choice([f"When the {c.food} were ready, they ate together." if c.food.endswith("s") else
                  f"When the {c.food} was ready, they ate together.",
                  f"{f.name} tasted the {c.food} and smiled.",
                  f'"This is very good," said {f.name}.']),
        r.choice([f"They gave the rest to {_a(c.animal)}.",
                  f"{h.name} was proud of {h.his} work.", f"There was nothing left on the table."]),
    ]


def gift(r, c):
    h, f = c.hero, c.friend
    return [
        r.choice([f"{h.name} found {_a(c.colour)} {c.toy} {c.at}.",
                  f"{c.at.capitalize()} {h.he} saw {_a(c.look)} {c.colour} {c.toy}."]),
        r.choice([f'"What a {r.choice(["nice", "pretty", "strange"])} {c.toy}," said {h.name}.',
                  f"{h.He} picked it up and looked at it for a long time."]),
        r.choice([f"But the {c.toy} belonged to {f.name}.",
                  f"Then {h.he} thought of {h.his} friend {f.name}, who was {r.choice(MOODS)}.",
                  f'"I know who would like this," {h.he} thought.']),
        r.choice([f"{h.name} ran to {f.name} and gave {f.him} the {c.toy}.",
                  f'"This is for you," said {h.name} to {f.name}.']),
        r.choice([f"{f.name} was so happy that {f.he} danced.",
                  f'{f.name} smiled and said, "Thank you, {h.name}!"']),
        r.choice([f"They played with the {c.toy} all {r.choice(['day', 'afternoon', 'evening'])}.",
                  f"Now the {c.toy} stands in the room of {f.name}."]),
    ]


def journey(r, c):
    h = c.hero
    other = r.choice([p for p in sorted(PLACES) if p != c.place])
    return [
        r.choice([f"{h.name} wanted to see the {other}.",
                  f"{h.He} had never been to the {other}.",
                  f"A letter said that a {c.colour} {c.toy} was hidden at the {other}."]),
        r.choice([f"{h.He} took {_a(c.toy)} and some {c.food} and went away.",
                  f"{h.He} walked over the hill and along the river."]),
        r.choice([f'On the way {h.he} met {_a(c.animal)}. "Where are you going?" it asked.',
                  f"The way was long, and soon {h.he} was tired.",
                  f"It became dark, and {h.name} was a little afraid."]),
        r.choice([f'"I am going to the {other}," said {h.name}.',
                  f"But {h.he} was brave and walked on.",
                  f"{_a(c.animal).capitalize()} showed {h.him} the way."]),
        r.choice([f"At last {h.he} came to the {other}.",
                  f"In the {r.choice(TIMES[:3])} {h.he} saw the {other}."]),
        r.choice([f"It was more beautiful than {h.he} had thought.",
                  f"There {h.he} found the {c.colour} {c.toy}.",
                  f"{h.name} was happy and stayed there for {r.choice(['two', 'three', 'five'])} "
                  "days."]),
    ]


def next_day(r, c):
    h = c.hero
    return r.choice([
        f"The next day {h.name} woke up early.", f"On {r.choice(DAYS)}, {h.name} went out again.",
        f"A week later {h.name} was {r.choice(MOODS)}.",
        f"After that, {h.name} wanted to see something new.",
    ])


def ending(r, c):
    h, f = c.hero, c.friend
    return r.choice([
        f"{h.name} went home and slept well.", "It was a good day.",
        f'"That was a good day," said {h.name}.', "They lived happily ever after.",
        f"That night {h.name} told {f.name} all about it.", f"And {h.name} was never sad again.",
        f"When {h.he} was in bed, {h.he} thought of the {c.place} and smiled.", "",
    ])


def story(r, episodes=1, **hints):
    """One story of so many episodes; hints fix who, animal, toy or place of the first."""
    cast = Cast(r, **hints)
    plots = [lost_and_found, meet_animal, make_food, gift, journey]
    if "animal" in hints:
        first = meet_animal
    elif "toy" in hints:
        first = r.choice([lost_and_found, gift])
    elif "place" in hints:
        first = r.choice([meet_animal, gift])
    else:
        first = r.choice(plots)
    parts = [opening(r, cast), setting(r, cast), *first(r, cast)]
    for _ in range(episodes - 1):
        parts += ["\n\n" + next_day(r, cast)]
        cast = Cast(r, who=cast.hero.name)
        parts += [setting(r, cast), *r.choice(plots)(r, cast)]
    parts.append(ending(r, cast))
    return " ".join(p for p in parts if p).replace(" \n\n", "\n\n")
