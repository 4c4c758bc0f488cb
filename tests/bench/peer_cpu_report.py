"""Medians, ratios, shares of the limits and the verdict of peer_cpu.py's samples. Pure."""
import math
import statistics

# Geometric mean of hexad / peer over the quantised types, at least.
TARGETS = {"decode": 1.5, "prefill": 1.5, "batch 8": 2.3, "depth": 2.5}
LEAST_RATIO, LEAST_SHARE = 0.95, 0.80  # of each row: one of the two
MOST_OTHERS = 0.05  # CPU time of other processes beside a sample


def limit_seconds(work, limits):
    """What memory or arithmetic units need for the work of one repetition, whichever is more."""
    def over(amount, rate):
        return amount / rate if rate > 0 else 0.0
    compute = sum(over(work[f"{kind}_ops"], limits[f"{kind}_ops_per_second"])
                  for kind in ("fp32", "int8", "int4"))
    return max(over(work["bytes"], limits["read_bytes_per_second"]), compute)


def median_rate(samples):
    """Of the undisturbed samples, if there are any."""
    good = [s["rate"] for s in samples if s["others"] <= MOST_OTHERS]
    return statistics.median(good or [s["rate"] for s in samples])


def summarise(cell, limits):
    """A row of the table from a cell: see peer_cpu.py for what is in one."""
    hexad = median_rate(cell["hexad"])
    peer = median_rate(cell["peer"]) if cell["peer"] else None
    ratio = hexad / peer if peer else None
    share = limit_seconds(cell["work"], limits) * hexad / cell["tokens"]
    return {"model": cell["model"], "quant": cell["quant"], "test": cell["test"], "hexad": hexad,
            "peer": peer, "flags": " ".join(cell["flags"] or []), "ratio": ratio, "share": share,
            "disturbed": sum(s["others"] > MOST_OTHERS for s in cell["hexad"] + cell["peer"]),
            "passes": share >= LEAST_SHARE or (ratio is not None and ratio >= LEAST_RATIO)}


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def means(rows):
    """(test, mean ratio over quantised types, target, met) of each test that has a target."""
    found = []
    for test, target in TARGETS.items():
        ratios = [r["ratio"] for r in rows
                  if r["test"] == test and r["quant"] != "f16" and r["ratio"] is not None]
        if ratios:
            mean = geometric_mean(ratios)
            found.append((test, mean, target, mean >= target))
    return found


def remarks(rows):
    """What else must hold, as lines; each begins with ok or MISSED."""
    lines = []
    prefills = [r for r in rows if r["test"] == "prefill"]
    floats = {r["model"]: r["peer"] for r in prefills if r["quant"] == "f16" and r["peer"]}
    for row in prefills:
        if row["quant"] == "f16" or row["model"] not in floats:
            continue
        other = floats[row["model"]]
        lines.append(f"{'ok' if row['hexad'] >= other else 'MISSED'}: prefill {row['model']} "
                     f"{row['quant']} {row['hexad']:.1f} against the peer's f16 {other:.1f}")
    batches = {}
    for row in rows:
        if row["test"] == "decode" or row["test"].startswith("batch "):
            batch = 1 if row["test"] == "decode" else int(row["test"].split()[1])
            batches.setdefault((row["model"], row["quant"]), {})[batch] = row["hexad"]
    for (model, quant), rates in batches.items():
        odd = [b for b in (3, 5, 6, 7) if b in rates and b - 1 in rates]
        for batch in odd:
            # No dearer than in proportion: a sequence more never makes all of them slower.
            good = rates[batch] >= 0.98 * rates[batch - 1]
            lines.append(f"{'ok' if good else 'MISSED'}: batch {batch} {model} {quant} "
                         f"{rates[batch]:.1f} against {rates[batch - 1]:.1f} at {batch - 1}")
    return lines


def table(rows, limits):
    lines = [f"limits: memory {limits['read_bytes_per_second'] / 1e9:.1f} GB/s; G op/s: fp32 "
             f"{limits['fp32_ops_per_second'] / 1e9:.0f}, int8 "
             f"{limits['int8_ops_per_second'] / 1e9:.0f}, 4-bit "
             f"{limits['int4_ops_per_second'] / 1e9:.0f}; {limits['threads']} threads",
             f"{'model':<9} {'quant':<7} {'test':<9} {'hexad':>8} {'peer':>8} {'ratio':>6} "
             f"{'limit':>6}  peer's flags"]
    for row in rows:
        peer = f"{row['peer']:8.1f} {row['ratio']:6.2f}" if row["peer"] else f"{'-':>8} {'-':>6}"
        note = "" if row["passes"] else "  MISSED"
        if row["disturbed"]:
            note += f"  ({row['disturbed']} disturbed samples)"
        lines.append(f"{row['model']:<9} {row['quant']:<7} {row['test']:<9} {row['hexad']:8.1f} "
                     f"{peer} {row['share']:6.0%}  {row['flags']}{note}")
    for test, mean, target, met in means(rows):
        lines.append(f"{'ok' if met else 'MISSED'}: geometric mean of {test} over quantised types "
                     f"{mean:.2f}, target {target}")
    return "\n".join(lines + remarks(rows))
