#!/usr/bin/env python3
"""Computes the main table of a run again, from its files alone.

Knows nothing of proctor but docs/files.md and docs/accounting.md, and shares no code with it: what both come to is either
right or wrong twice in different ways. Usage: recompute.py RUN [--provider-errors fail] [--recover any]; prints JSON.
"""

import argparse
import collections
import json
import pathlib
import sys


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None
    except (ValueError, OSError):
        return "broken"


def standing(method_folder, attempt):
    """The folder that stands for an attempt now, and how many it stands in for."""
    name, replaced = str(attempt), 0
    while True:
        again = f"{attempt}.{replaced + 1}"
        if not (method_folder / again / "rerun.json").exists():
            return method_folder / name, replaced
        name, replaced = again, replaced + 1


def picture(folder, outcome):
    """yes, no, or unknown: whether there is a valid canonical rendering of what was left."""
    left = [it for it in outcome["artifacts"] if it["state"] == "present"]
    if not left:
        return "no", None
    record = load(folder / "render" / "render.json")
    if not isinstance(record, dict) or record["source"] != left[0]["digest"]:
        return "unknown", None
    if record["status"] != "rendered":
        return "no", record["duration_ms"]
    if (folder / "render" / "output.png").is_file():
        return "yes", record["duration_ms"]
    return "unknown", None


def complete(score):
    ratings = [score["visual_quality"], score["domain_quality"]]
    if any(point["satisfied"] is None for point in score["points"]):
        return False
    return ratings.count(None) in (0, 2) and (bool(score["points"]) or None not in ratings)


def sort_out(trial, provider_errors, recover, judged_run):
    """(set of B.4, place in the coverage) of one trial, read straight from the rules on the page."""
    outcome = trial["outcome"]
    if not isinstance(outcome, dict):
        return "U", "unresolved"
    ending = outcome["ending"]
    outage = ending == "model_error" and outcome["detail"]["cause"] == "provider"
    if ending in ("cancelled", "infra_error") or (outage and provider_errors == "unresolved"):
        return "U", "unresolved"
    scored = trial["scored"] if judged_run else True
    seen = trial["picture"]
    if ending == "completed":
        if seen == "unknown":
            return "U", "unresolved"
        if seen == "no":
            return "F", "failed"
        return ("J" if scored else "U"), "completed"
    place = "timed_out" if ending == "timed_out" else "failed"
    if place == "failed" and recover != "any":
        return "F", place
    if seen == "no":
        return "F", place
    return ("R" if seen == "yes" and scored else "U"), place


def executed(trial):
    """Whether the method itself brought it to an end."""
    if not isinstance(trial["outcome"], dict):
        return False
    return trial["coverage"] != "unresolved" or trial["outcome"]["ending"] == "completed"


def duration(outcome):
    if outcome["started_at"] is not None:
        return outcome["timing"]["agent_ms"]
    return outcome["model_wait_ms"] or None


def mean(pairs):
    pairs = list(pairs)
    bottom = sum(weight for _, weight in pairs)
    top = sum(value for value, _ in pairs)
    return {"numerator": top, "denominator": bottom, "value": top / bottom if bottom else None}


def collect(run):
    root = pathlib.Path(run)
    plan = load(root / "run.json")
    trials = []
    for method in plan["methods"]:
        for task in plan["tasks"]:
            for attempt in range(1, plan["attempts"] + 1):
                folder, replaced = standing(root / "trials" / task["suite"] / task["id"] / method["id"], attempt)
                outcome = load(folder / "outcome.json")
                name = folder.relative_to(root / "trials").as_posix()
                if isinstance(outcome, dict) and outcome.get("trial") != name:
                    outcome = "broken"
                trial = {"method": method, "task": (task["suite"], task["id"]), "outcome": outcome,
                         "replaced": replaced, "picture": None, "render_ms": None, "score": None, "scored": False}
                if isinstance(outcome, dict):
                    trial["picture"], trial["render_ms"] = picture(folder, outcome)
                    score = load(folder / "score.json")
                    if isinstance(score, dict):
                        trial["score"], trial["scored"] = score, complete(score)
                trials.append(trial)
    return plan, trials


def points_of(score):
    count = collections.Counter(point["kind"] for point in score["points"])
    good = collections.Counter(point["kind"] for point in score["points"] if point["satisfied"])
    return count, good


def scores(mine, tasks, members):
    """Points over points, ratings over trials; what is not in J or R has nothing."""
    table = {}
    for kind in ("direct", "derived", "invariant"):
        pairs = []
        for trial in mine:
            if trial["class"] not in members or trial["task"] not in tasks:
                continue
            if trial["class"] in "JR":
                count, good = points_of(trial["score"])
                pairs.append((good[kind], count[kind]))
            else:
                pairs.append((0, tasks[trial["task"]]["points"][kind]))
        table[kind] = mean(pairs)
    for rating in ("visual_quality", "domain_quality"):
        pairs = []
        for trial in mine:
            if trial["class"] not in members or not tasks.get(trial["task"], {}).get("rated"):
                continue
            pairs.append(((trial["score"][rating] or 0) if trial["class"] in "JR" else 0, 1))
        table[rating] = mean(pairs)
    return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--provider-errors", default="unresolved")
    parser.add_argument("--recover", default="timeouts")
    options = parser.parse_args()
    plan, trials = collect(options.run)
    judged_run = any(trial["score"] is not None for trial in trials)
    tasks = {}
    for trial in trials:
        trial["class"], trial["coverage"] = sort_out(trial, options.provider_errors, options.recover, judged_run)
        if trial["score"] is not None:
            known = tasks.setdefault(trial["task"], {"points": points_of(trial["score"])[0], "rated": False})
            known["rated"] |= trial["score"]["visual_quality"] is not None
    table = {}
    for method in plan["methods"]:
        mine = [trial for trial in trials if trial["method"] is method]
        everything = len(mine)
        classes = collections.Counter(trial["class"] for trial in mine)
        coverage = collections.Counter(trial["coverage"] for trial in mine)
        if sum(classes[it] for it in "JRFU") != everything:
            sys.exit(f"{method['id']}: the sets do not add up")
        timed = [(trial, duration(trial["outcome"])) for trial in mine if executed(trial)]
        timed = [(trial, ms) for trial, ms in timed if ms is not None]
        recovered = [
            (trial["outcome"]["budget_ms"] + trial["render_ms"] if trial["class"] == "R" else ms) / 1000
            for trial, ms in timed
        ]
        price = plan["prices"].get(method["model"])
        spent = []
        for trial in mine:
            if executed(trial) and price:
                tokens = trial["outcome"]["tokens"]
                cached = min(tokens["cached_input_tokens"], tokens["input_tokens"])
                fresh = tokens["input_tokens"] - cached
                cheap = price["cached_input"] if price["cached_input"] is not None else price["input"]
                spent.append((fresh * price["input"] + cached * cheap + tokens["output_tokens"] * price["output"]) / 1e6)
        waited = [
            trial for trial in mine
            if isinstance(trial["outcome"], dict)
            and trial["outcome"]["provider_wait_ms"] > 0.1 * trial["outcome"]["timing"]["agent_ms"]
        ]
        table[method["id"]] = {
            "registered": everything,
            "classes": {it: classes[it] for it in "JRFU"},
            "completed": coverage["completed"],
            "completed_with_recovery": coverage["completed"] + classes["R"],
            "timeouts": coverage["timed_out"],
            "failures": coverage["failed"],
            "unresolved": coverage["unresolved"],
            "superseded": sum(trial["replaced"] for trial in mine),
            "throttled": len(waited),
            "time_s": mean((ms / 1000, 1) for _, ms in timed),
            "time_with_recovery_s": mean((seconds, 1) for seconds in recovered),
            "tool_calls": mean((trial["outcome"]["tool_calls"], 1) for trial in mine if executed(trial)),
            "cost_usd": mean((usd, 1) for usd in spent),
            "auto_zero": scores(mine, tasks, "JRFU"),
            "auto_zero_resolved": scores(mine, tasks, "JRF"),
            "completed_only": scores(mine, tasks, "JR"),
        }
    json.dump({"judged": judged_run, "methods": table}, sys.stdout, indent=1)


main()
