//! Traces of made-up agents: some thirty calls of looking, measuring, writing, rendering and comparing, by habits that
//! differ from method to method.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proctor_store::RunDir;
use proctor_traces::{Digest, Ending, Timestamp};
use serde_json::{Value, json};

use crate::fixture::{BUDGET_MS, Dice, Made, method, record, write};

/// How an agent of a method works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Whether its harness is Claude Code, and not Codex.
    pub(crate) claude: bool,
    /// Calls of analysis before the first writing.
    pub(crate) analysis: u64,
    /// Rounds of rendering, comparing and editing.
    pub(crate) rounds: u64,
    /// Seconds that the model thinks before a call, on average.
    pub(crate) thinks_s: u64,
}

/// Habits of five methods, as different as the paper's.
pub(crate) const HABITS: [Habits; 5] = [
    Habits { claude: false, analysis: 5, rounds: 5, thinks_s: 22 },
    Habits { claude: false, analysis: 9, rounds: 4, thinks_s: 38 },
    Habits { claude: true, analysis: 12, rounds: 3, thinks_s: 40 },
    Habits { claude: false, analysis: 8, rounds: 5, thinks_s: 48 },
    Habits { claude: true, analysis: 21, rounds: 2, thinks_s: 62 },
];

/// A trace while it is written.
struct Writer<'d> {
    dice: &'d mut Dice,
    claude: bool,
    lines: String,
    seq: u64,
    now: i64,
    end: i64,
    exchanges: u64,
    calls: u64,
    versions: u64,
}

impl Writer<'_> {
    fn put(&mut self, source: &str, kind: &Value) {
        let at = Timestamp::from_millis(1_790_000_000_000 + self.now);
        let mut kind = kind.to_string();
        kind.remove(0);
        let _ = writeln!(
            self.lines,
            r#"{{"seq":{},"at":"{at}","offset_ms":{},"turn":1,"source":"{source}",{kind}"#,
            self.seq, self.now
        );
        self.seq += 1;
    }

    /// The model thinks, then a tool works; whether there is time left. `version` is what the artifact is then.
    fn call(
        &mut self,
        thinks_s: u64,
        name: &str,
        input: &Value,
        output: &str,
        works_ms: u64,
        version: Option<&str>,
    ) -> bool {
        if self.now >= self.end {
            return false;
        }
        self.exchanges += 1;
        let exchange = self.exchanges;
        self.put("gateway", &json!({"kind": "model_request", "exchange": exchange, "wire": "openai_responses", "model": "large", "bytes": 9000 + 700 * exchange}));
        let thought = thinks_s * 500 + self.dice.below(thinks_s * 1000 + 1);
        self.now += i64::try_from(thought).unwrap_or(0);
        if self.now >= self.end {
            self.now = self.end;
            return false;
        }
        let usage = json!({"input_tokens": 9000, "cached_input_tokens": 8000, "output_tokens": 400, "reasoning_tokens": 100});
        self.put("gateway", &json!({"kind": "model_response", "exchange": exchange, "status": 200, "end": "complete", "usage": usage}));
        self.now += 20;
        self.calls += 1;
        let id = format!("call_{exchange}");
        self.put("agent_stream", &json!({"kind": "tool_started", "id": id, "name": name, "input": input}));
        self.now += i64::try_from(works_ms / 2 + self.dice.below(works_ms + 1)).unwrap_or(0);
        let over = self.now < self.end;
        self.now = self.now.min(self.end);
        if let (Some(text), true) = (version, over) {
            let digest = Digest::of(format!("{text}{exchange}").as_bytes());
            self.versions += 1;
            self.put("watcher", &json!({"kind": "artifact_changed", "digest": digest, "bytes": text.len()}));
        }
        let status = if over { "ok" } else { "unfinished" };
        let output = if over { output } else { "" };
        self.put("agent_stream", &json!({"kind": "tool_finished", "id": id, "status": status, "exit_code": 0, "output": output, "output_bytes": output.len(), "truncated": false}));
        over
    }

    fn shell(
        &mut self,
        thinks_s: u64,
        script: &str,
        output: &str,
        works_ms: u64,
        version: Option<&str>,
    ) -> bool {
        if self.claude {
            let input = json!({"command": script, "description": "Go on"});
            self.call(thinks_s, "Bash", &input, output, works_ms, version)
        } else {
            let input = json!({"cmd": script, "workdir": "/work", "yield_time_ms": 10_000});
            self.call(thinks_s, "exec_command", &input, output, works_ms, version)
        }
    }

    fn view(&mut self, thinks_s: u64, path: &str) -> bool {
        let (name, key) = if self.claude { ("Read", "file_path") } else { ("view_image", "path") };
        self.call(thinks_s, name, &json!({key: format!("/work/{path}")}), "", 60, None)
    }

    fn write(&mut self, thinks_s: u64, content: &str) -> bool {
        if self.claude {
            let input = json!({"file_path": "/work/artifact.html", "content": content});
            self.call(thinks_s, "Write", &input, "File created successfully", 40, Some(content))
        } else {
            let script = format!("cat > artifact.html <<'EOF'\n{content}EOF\nwc -c artifact.html");
            self.shell(thinks_s, &script, "4711 artifact.html\n", 60, Some(content))
        }
    }

    fn edit(&mut self, thinks_s: u64, old: &str, new: &str) -> bool {
        if self.claude {
            let input = json!({"file_path": "/work/artifact.html", "old_string": old, "new_string": new});
            self.call(thinks_s, "Edit", &input, "The file has been updated.", 40, Some(new))
        } else {
            let patch = format!(
                "*** Begin Patch\n*** Update File: artifact.html\n@@\n-{old}\n+{new}\n*** End Patch\n"
            );
            self.call(
                thinks_s,
                "apply_patch",
                &json!({"input": patch}),
                "Success. Updated the following files:\nM artifact.html\n",
                80,
                Some(new),
            )
        }
    }

    fn analyse(&mut self, thinks_s: u64) -> bool {
        let (x, y) = (self.dice.below(900), self.dice.below(600));
        let pixels = (0..24 + self.dice.below(30)).fold(String::new(), |mut all, row| {
            let _ = writeln!(
                all,
                "{:4} {:4} (#{:06x}) run {}",
                y + row,
                x,
                (row * 9_176_263 + x) & 0xff_ffff,
                row % 13
            );
            all
        });
        match self.dice.below(6) {
            0 => {
                let script = format!(
                    "python3 - <<'EOF'\nfrom PIL import Image\nim = Image.open('source.png').convert('RGB')\nim.crop(({x}, {y}, {}, {})).resize((800, 600)).save('/tmp/crop_{x}.png')\nEOF",
                    x + 200,
                    y + 150
                );
                self.shell(thinks_s, &script, "", 700, None)
            }
            1 => self.view(thinks_s, "crop.png"),
            2 => {
                let script = format!(
                    "cd /work && python3 - <<'EOF'\nfrom PIL import Image\nimport numpy as np\na = np.array(Image.open('source.png').convert('RGB'))\nrow = a[{y}]\nstart = 0\nfor i in range(1, row.shape[0]):\n    if not (row[i] == row[i - 1]).all():\n        print({y}, start, i, row[start])\n        start = i\nEOF"
                );
                self.shell(thinks_s, &script, &pixels, 900, None)
            }
            3 => {
                let script = format!("tesseract source.png stdout --psm {} tsv | head -60", 6 + x % 6);
                self.shell(thinks_s, &script, &pixels, 2500, None)
            }
            4 => {
                let script = "python3 - <<'EOF'\nimport cv2\nim = cv2.imread('source.png')\ng = cv2.cvtColor(im, cv2.COLOR_BGR2GRAY)\n_, t = cv2.threshold(g, 200, 255, cv2.THRESH_BINARY_INV)\ncs, _ = cv2.findContours(t, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)\nfor c in cs:\n    x, y, w, h = cv2.boundingRect(c)\n    if w > 30 and h > 20:\n        print(x, y, w, h)\nEOF";
                self.shell(thinks_s, script, &pixels, 1200, None)
            }
            _ => self.shell(
                thinks_s,
                "fc-list | grep -i -E 'inter|arial|liberation' | sort | head -40",
                &pixels,
                300,
                None,
            ),
        }
    }

    fn compare(&mut self, thinks_s: u64) -> bool {
        if self.dice.below(3) > 0 {
            return self.view(thinks_s, "preview.png");
        }
        let script = "compare -metric RMSE source.png preview.png diff.png; python3 - <<'EOF'\nfrom PIL import Image, ImageChops\na = Image.open('source.png').convert('RGB')\nb = Image.open('preview.png').convert('RGB')\nprint(a.size, b.size, ImageChops.difference(a, b).getbbox())\nEOF";
        self.shell(
            thinks_s,
            script,
            "2031.77 (0.031)\n(1440, 900) (1440, 900) (12, 40, 1201, 880)\n",
            1100,
            None,
        )
    }
}

fn page(dice: &mut Dice) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html><head><style>\nbody { font-family: Inter, Arial; margin: 0; background: #f7f8fa; }\n",
    );
    for n in 0..8 {
        let _ = writeln!(
            page,
            ".b{n} {{ position: absolute; left: {}px; top: {}px; width: 180px; border: 1px solid #ccd; }}",
            dice.below(1200),
            dice.below(800)
        );
    }
    page.push_str("</style></head><body>\n");
    for n in 0..22 + dice.below(20) {
        let _ = writeln!(
            page,
            "<div class=\"b{}\"><h3>Step {n}</h3><p>{} of {}</p></div>",
            n % 8,
            dice.below(900),
            dice.below(9000)
        );
    }
    page.push_str("</body></html>\n");
    page
}

/// What one agent did.
pub(crate) struct Session {
    /// Its `trace.jsonl`.
    pub(crate) lines: String,
    /// Its calls.
    pub(crate) calls: u64,
    /// Versions of its artifact that were seen.
    pub(crate) versions: u64,
    /// Its time.
    pub(crate) agent_ms: u64,
    /// Whether it came to an end by itself.
    pub(crate) done: bool,
    /// Whether there is an artifact.
    pub(crate) wrote: bool,
}

/// A session of an agent with these habits.
pub(crate) fn session(dice: &mut Dice, habits: Habits) -> Session {
    let end = i64::try_from(BUDGET_MS).unwrap_or(i64::MAX);
    // Some tasks take their time.
    let thinks = habits.thinks_s * (60 + dice.below(80)) / 100;
    let content = page(dice);
    let (lines, claude) = (String::new(), habits.claude);
    let mut it = Writer { dice, claude, lines, seq: 0, now: 0, end, exchanges: 0, calls: 0, versions: 0 };
    it.put("guest", &json!({"kind": "turn_started"}));
    let task = "# Task\n\nChange Method B at C3 in panel B from 58.2 to 62.0 and update the corresponding visible values.\n";
    let mut goes_on =
        it.view(thinks / 3, "source.png") && it.shell(thinks / 3, "cat TASK.md && ls -la", task, 80, None);
    let extra = it.dice.below(4);
    for _ in 0..habits.analysis + extra {
        goes_on = goes_on && it.analyse(thinks);
    }
    goes_on = goes_on && it.write(thinks * 2, &content);
    let wrote = goes_on;
    let extra = it.dice.below(4);
    for round in 0..habits.rounds + extra {
        let script =
            "chromium --headless --screenshot=preview.png --window-size=1440,900 file:///work/artifact.html";
        goes_on = goes_on && it.shell(thinks / 2, script, "", 3500, None) && it.compare(thinks / 2);
        if it.dice.below(4) == 0 {
            goes_on = goes_on && it.shell(thinks / 2, "sed -n 1,60p artifact.html", &content, 60, None);
        }
        let old = format!("<div class=\"b{}\"><h3>Step {round}</h3>", round % 8);
        goes_on = goes_on && it.edit(thinks, &old, &old.replace("Step", "Stage"));
    }
    let done = goes_on && it.now + 9_000 < end;
    if done {
        it.now += 9_000;
        let text = "Done: the artifact matches the source but for the change.";
        it.put("agent_stream", &json!({"kind": "agent_text", "text": text}));
    } else {
        it.now = end + 2;
    }
    it.put("runner", &json!({"kind": "turn_finished", "usage": null}));
    let agent_ms = u64::try_from(it.now).unwrap_or(0);
    Session { lines: it.lines, calls: it.calls, versions: it.versions, agent_ms, done, wrote }
}

/// A run of `tasks` by as many methods as there are habits, with the traces of its trials.
pub(crate) fn campaign(root: &Path, tasks: usize) -> RunDir {
    let names = ["codex-swift", "codex-steady", "cc-steady", "codex-slow", "cc-slow"];
    let methods = names.iter().map(|name| method(name, "codex@1.0.0")).collect();
    let record = record(tasks, methods, 1);
    let run = RunDir::open_or_create(root, &record).unwrap();
    let mut dice = Dice(11);
    for trial in record.trials().unwrap() {
        let at = names.iter().position(|it| *it == trial.method().as_str()).unwrap();
        let session = session(&mut dice, HABITS[at]);
        let ending = if session.done { Ending::Completed } else { Ending::TimedOut };
        let good = session.wrote && (session.done || dice.below(2) == 0);
        let made = if good {
            Made::rendered(ending)
        } else {
            Made { artifact: session.wrote, ..Made::ended(ending) }
        };
        let made = Made {
            agent_ms: session.agent_ms,
            tool_calls: session.calls,
            versions: session.versions,
            ..made
        };
        write(&run, &record, &trial, &made);
        fs::write(run.trial(&trial).path().join("trace.jsonl"), session.lines).unwrap();
    }
    run
}
