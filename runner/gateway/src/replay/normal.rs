//! What a request says apart from what no two runs share.
//!
//! Found by running the same scripted trials several times with both CLIs and comparing their requests. Two kinds of
//! rules: fields that only name the session, which are left out, and patterns in texts, which a name in angle brackets
//! takes the place of. Outputs of tools have more of these than what people and harnesses write: a duration in a prompt
//! is part of the task, one that a command printed is not.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use proctor_traces::Digest;
use regex::Regex;
use serde_json::Value;

use super::names::names_in;

/// Fields of a whole request that name the session, the user or the machine.
const SESSION_FIELDS: [&str; 7] = [
    "metadata",
    "client_metadata",
    "prompt_cache_key",
    "safety_identifier",
    "user",
    "user_prompt_id",
    "session_id",
];

/// Texts without a blank from this length on are data (pictures in base64), compared by digest.
const DATA_FROM: usize = 512;

const MONTH: &str = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";
const CLOCK: &str = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?: ?[AP]M)?";

/// A pattern and what stands for it.
struct Rule {
    pattern: Regex,
    name: &'static str,
}

/// Rules for every text. A date without a year or a time of day may well be part of a task, and stays.
static EVERYWHERE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    rules(&[
        ("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "<uuid>"),
        (
            r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}[:-]\d{2}(?:[:-]\d{2}(?:[.,]\d+)?)?(?:Z| ?[+-]\d{2}:?\d{2})?)?",
            "<date>",
        ),
        // As `date`, `ls -l` and prompts of harnesses write it: Mon Nov 30 11:27:33 UTC 2026; Nov 30 2026.
        (
            &format!(
                r"\b(?:[MTWFS][a-z]{{2,8}},? )?{MONTH} {{1,2}}\d{{1,2}},? {{1,2}}(?:{CLOCK}|\d{{4}}\b)(?: [A-Z]{{3,4}}\b)?(?: \d{{4}}\b)?"
            ),
            "<date>",
        ),
        (&format!(r"\b\d{{1,2}} {MONTH} \d{{4}}(?: {CLOCK})?"), "<date>"),
        (r"/tmp/tmp[._]?\w{6,12}", "<temporary>"),
    ])
});

/// More rules for what tools have printed.
static OUTPUTS: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    rules(&[
        // Codex, around the output of every command, and of one that goes on.
        ("Chunk ID: [0-9a-f]+", "Chunk ID: <id>"),
        (r"Original token count: \d+", "Original token count: <n>"),
        (r"session ID \d+", "session ID <id>"),
        // Claude Code, of a command in the background and its file.
        (r"with ID: [0-9a-z]+", "with ID: <id>"),
        (r"/tasks/[0-9a-z]+\.output", "/tasks/<id>.output"),
        // Chromium's remarks on its own state: which there are, and in what order, is chance. What a page logs stays.
        (r"(?m)^\[(?:\d+:\d+:)?\d{4}/\d{6}\.\d+:[A-Z]+\d*:[\w/.-]+\.(?:cc|mm|h)[:(]\d+\)?\].*\n?", ""),
        (r"\[(?:\d+:\d+:)?\d{4}/\d{6}\.\d+:", "[<time>:"),
        (r"\b\d+m\d+(?:\.\d+)?s\b", "<duration>"),
        (r"\b\d+\.\d+(?:e-\d+)? ?(?:s|ms|us|µs|secs?|seconds)\b", "<duration>"),
        (r"\b\d{1,2}:\d{2}:\d{2}(?:\.\d+)?\b", "<time>"),
        // Seconds or milliseconds since 1970, until 2033.
        (r"\b1[6-9]\d{8}(?:\d{3})?(?:\.\d+)?\b", "<epoch>"),
        (r"(?i)\bpid[ =:]{1,3}\d+", "pid <id>"),
        ("0x[0-9a-f]{6,16}", "<address>"),
    ])
});

fn rules(table: &[(&str, &'static str)]) -> Vec<Rule> {
    // A test holds that all of them can be read.
    let rule =
        |(pattern, name): &(&str, &'static str)| Some(Rule { pattern: Regex::new(pattern).ok()?, name });
    table.iter().filter_map(rule).collect()
}

/// Who wrote a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// People, the harness, or the model.
    Sender,
    /// A tool.
    Tool,
}

/// The body of a request without what no two runs share; one that is not JSON is one text. Keys are in order, so equal
/// ones are equal as text too.
pub(super) struct Normal {
    pub(super) value: Value,
    /// The names that its harness made up, in order.
    pub(super) names: Vec<String>,
}

impl Normal {
    pub(super) fn of(body: &[u8]) -> Self {
        let mut names = Vec::new();
        let value = match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => {
                let kept = fields.into_iter().filter(|(name, _)| !SESSION_FIELDS.contains(&name.as_str()));
                of(Value::Object(kept.collect()), By::Sender, &mut names)
            }
            Ok(other) => of(other, By::Sender, &mut names),
            Err(_) => Value::String(of_text(&String::from_utf8_lossy(body), By::Sender, &mut names)),
        };
        Self { value, names }
    }
}

fn of(value: Value, by: By, names: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => Value::String(of_text(&text, by, names)),
        Value::Array(mut items) => {
            // Calls that were made together come back in whatever order they ended.
            for run in items.chunk_by_mut(|a, b| call_of(a).is_some() && call_of(b).is_some()) {
                run.sort_by(|a, b| call_of(a).cmp(&call_of(b)));
            }
            Value::Array(items.into_iter().map(|item| of(item, by, names)).collect())
        }
        Value::Object(fields) => {
            let result = is_result(&fields);
            let by = if result { By::Tool } else { by };
            let kept = fields.into_iter().filter(|(name, _)| {
                // Marks the end of what a server may keep, so it is on the last result, whichever that is.
                !(result && name == "cache_control")
            });
            let kept: BTreeMap<String, Value> = kept.collect();
            let kept = kept.into_iter().map(|(name, value)| {
                let by = if name == "functionResponse" { By::Tool } else { by };
                (name, of(value, by, names))
            });
            Value::Object(kept.collect())
        }
        other => other,
    }
}

fn is_result(fields: &serde_json::Map<String, Value>) -> bool {
    let is = |name: &str, test: fn(&str) -> bool| fields.get(name).and_then(Value::as_str).is_some_and(test);
    is("type", |kind| kind == "tool_result" || kind.ends_with("_output")) || is("role", |role| role == "tool")
}

/// The call that an item is the result of.
fn call_of(item: &Value) -> Option<&str> {
    let fields = item.as_object().filter(|fields| is_result(fields))?;
    ["call_id", "tool_use_id", "tool_call_id"].into_iter().find_map(|name| fields.get(name)?.as_str())
}

fn of_text(text: &str, by: By, names: &mut Vec<String>) -> String {
    if text.len() >= DATA_FROM && !text.contains(char::is_whitespace) {
        return format!("<{} bytes, {}>", text.len(), Digest::of(text.as_bytes()));
    }
    if by == By::Tool {
        names_in(text, names);
    }
    let more: &[Rule] = if by == By::Tool { &OUTPUTS } else { &[] };
    let mut text = Cow::Borrowed(text);
    for Rule { pattern, name } in EVERYWHERE.iter().chain(more) {
        if let Cow::Owned(replaced) = pattern.replace_all(&text, *name) {
            text = Cow::Owned(replaced);
        }
    }
    match by {
        By::Tool => text.trim_end().to_owned(),
        By::Sender => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn normal(body: &[u8]) -> Value {
        Normal::of(body).value
    }

    fn same(a: &Value, b: &Value) -> bool {
        normal(a.to_string().as_bytes()) == normal(b.to_string().as_bytes())
    }

    #[test]
    fn all_rules_can_be_read() {
        assert_eq!((EVERYWHERE.len(), OUTPUTS.len()), (5, 13));
    }

    #[test]
    fn sessions_of_codex_are_left_out() {
        let request = |id: &str, chunk: &str, wall: &str, day: &str| {
            json!({
                "model": "m", "prompt_cache_key": id, "client_metadata": {"session_id": id},
                "input": [
                    {"type": "message", "id": format!("msg_{id}"), "content": format!("<current_date>{day}</current_date>")},
                    {"type": "function_call_output", "id": format!("fco_{id}"), "call_id": "call_1_0",
                     "output": format!("Chunk ID: {chunk}\nWall time: {wall} seconds\nProcess exited with code 0\nOutput:\nx")},
                ],
            })
        };
        let one = request("01a22e26-4f13-7031-9a64-13dbc5e13f05", "803cba", "0.6238", "2026-11-30");
        let two = request("01a22e26-895d-7b62-a030-4c6f1e6dc2c8", "a50360", "10.0001", "2027-01-02");
        assert!(same(&one, &two));
        let mut other = two.clone();
        other["input"][1]["output"] = json!("Chunk ID: a50360\nProcess exited with code 1\nOutput:\nx");
        assert!(!same(&one, &other));
        other = two;
        other["model"] = json!("n");
        assert!(!same(&one, &other));
    }

    #[test]
    fn sessions_of_claude_code_are_left_out() {
        let request = |user: &str, time: &str| {
            json!({
                "metadata": {"user_id": user},
                "messages": [{"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": format!("total 4\n-rw-r--r-- 1 agent agent 997 {time} TASK.md")},
                ]}],
            })
        };
        assert!(same(&request("a", "Nov 30 20:29"), &request("b", "Dec  1 09:03")));
        assert!(same(&request("a", "Nov 30 20:29"), &request("b", "Dec  1  2027")));
        assert!(!same(&request("a", "Nov 30 20:29 a"), &request("a", "Nov 30 20:29 b")));
    }

    #[test]
    fn results_of_calls_made_together_may_come_in_any_order() {
        let result =
            |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
        let marked = |mut result: Value| {
            result["cache_control"] = json!({"type": "ephemeral"});
            result
        };
        let request = |items: [Value; 3]| json!({"messages": [{"content": items}]});
        let text = json!({"type": "text", "text": "go on"});
        let (a, b) = (result("1", "a"), result("2", "b"));
        let one = request([a.clone(), marked(b.clone()), text.clone()]);
        assert!(same(&one, &request([b.clone(), marked(a.clone()), text.clone()])));
        // What was said between them is not moved.
        assert!(!same(&one, &request([a, text, b.clone()])));
        assert!(!same(&one, &request([result("1", "b"), b, json!({"type": "text", "text": "go on"})])));
    }

    #[test]
    fn remarks_of_chromium_are_left_out_and_those_of_a_page_stay() {
        let request = |output: &str| json!({"messages": [{"role": "tool", "content": output}]});
        let one = "[1130/204413.053205:ERROR:dbus/bus.cc:405] Failed to connect: none\n[1130/204413.05:WARNING:media/gpu/vaapi_wrapper.cc:1655] no devices\n9 bytes written\n";
        let two = "[77:79:0102/010000.1:WARNING:media/gpu/vaapi_wrapper.cc(1655)] no devices\n9 bytes written\n[0102/010000.2:ERROR:dbus/bus.cc:405] Failed\n";
        assert!(same(&request(one), &request(two)));
        let page =
            |time: &str, said: &str| request(&format!("[{time}:INFO:CONSOLE:1] \"{said}\", source: x\n"));
        assert!(same(&page("1130/204413.053205", "a"), &page("0102/010000.100000", "a")));
        assert!(!same(&page("1130/204413.053205", "a"), &page("1130/204413.053205", "b")));
    }

    #[test]
    fn what_is_part_of_a_task_stays() {
        let prompt = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
        for (one, two) in [
            ("move May 12 left", "move May 13 left"),
            ("an animation of 1.5 s", "an animation of 2.5 s"),
            ("at 10:30:00", "at 10:31:00"),
            ("colour 0x00ff00ff", "colour 0x00ff00fe"),
        ] {
            assert!(!same(&prompt(one), &prompt(two)), "{one}");
        }
        for (one, two) in [
            ("Today's date is 2026-11-30.", "Today's date is 2027-01-02."),
            ("Today's date is Monday, November 30, 2026.", "Today's date is Saturday, January 2, 2027."),
            ("Mon Nov 30 20:28:53 UTC 2026", "Sat Jan  2 01:00:00 UTC 2027"),
        ] {
            assert!(same(&prompt(one), &prompt(two)), "{one}");
        }
    }

    #[test]
    fn pictures_are_compared_whole_and_kept_short() {
        let request =
            |end: &str| json!({"image_url": format!("data:image/png;base64,{}{end}", "A".repeat(9000))});
        assert!(!same(&request("A"), &request("B")));
        assert!(normal(request("A").to_string().as_bytes()).to_string().len() < 200);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "\\PC{0,80}") {
            let _ = normal(&bytes);
            let body = json!({"input": [{"type": "function_call_output", "output": text}]}).to_string();
            // Done twice it changes nothing more.
            let once = normal(body.as_bytes()).to_string();
            prop_assert_eq!(normal(once.as_bytes()).to_string(), once);
        }
    }
}
