"""Samples of both sides as one table."""
import pathlib
import statistics

from peer_serve_scenarios import SCENARIOS


def model_name(path):
    return pathlib.Path(path).stem


def median_of(samples, measure):
    return statistics.median(s["measures"][measure.name] for s in samples)


def by_setting(samples):
    groups = {}
    for sample in samples:
        groups.setdefault(sample["setting"], []).append(sample)
    return groups


def best_setting(samples, measure):
    """The peer's, by the median of its samples."""
    medians = {setting: median_of(group, measure) for setting, group in by_setting(samples).items()}
    return (max if measure.larger_is_better else min)(medians, key=medians.get)


def advantage(mine, theirs, measure):
    """How many times better mine is."""
    return mine / theirs if measure.larger_is_better else theirs / mine


def ratio_of(hexad, peer, measure):
    """The median over pairs where both were measured, else the ratio of the medians."""
    value = {s["pair"]: s["measures"][measure.name] for s in hexad}
    pairs = [advantage(value[s["pair"]], s["measures"][measure.name], measure)
             for s in peer if s["pair"] in value]
    if pairs:
        return statistics.median(pairs)
    return advantage(median_of(hexad, measure), median_of(peer, measure), measure)


def rows(samples):
    keys = sorted({(s["model"], s["scenario"]) for s in samples})
    for model, name in keys:
        mine = [s for s in samples if (s["model"], s["scenario"]) == (model, name)]
        hexad = [s for s in mine if s["side"] == "hexad"]
        peer = [s for s in mine if s["side"] == "peer"]
        for measure in SCENARIOS[name].measures:
            yield row(model, name, measure, hexad, peer)


def row(model, name, measure, hexad, peer):
    cells = [model, name, measure.name, "-", "-", "-", "", "", ""]
    reached = True
    if measure.factor:
        cells[6] = f"{measure.factor:g}x"
    if hexad:
        value = median_of(hexad, measure)
        cells[3] = f"{value:.4g} {measure.unit} ({len(hexad)})"
        reached = value < measure.below
        if measure.below < float("inf"):
            cells[6] += f", < {measure.below:g} {measure.unit}"
    if peer:
        setting = best_setting(peer, measure)
        theirs = by_setting(peer)[setting]
        cells[4] = f"{median_of(theirs, measure):.4g} {measure.unit} ({len(theirs)})"
        cells[8] = setting or "none"
        if hexad:
            ratio = ratio_of(hexad, theirs, measure)
            cells[5] = f"{ratio:.2f}x"
            if measure.factor:
                cells[7] = "yes" if reached and ratio >= measure.factor else "NO"
    return cells


def print_table(samples):
    table = [["model", "test", "measure", "hexad (n)", "peer (n)", "ratio", "target", "met",
              "the peer's flags"], *rows(samples)]
    widths = [max(len(r[i]) for r in table) for i in range(len(table[0]))]
    print()
    for r in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(r, widths)).rstrip())
    for scenario in SCENARIOS.values():
        if any(s["scenario"] == scenario.name for s in samples):
            print(f"{scenario.name}: {scenario.title}")
    worst = max(samples, key=lambda s: s["use"]["client"], default=None)
    if worst:
        others = max(s["use"]["others"] + s["use"]["stolen"] for s in samples)
        print(f"The client took at most {100 * worst['use']['client']:.1f} % of the CPU time, "
              f"other processes and the host up to {100 * others:.1f} %.")
