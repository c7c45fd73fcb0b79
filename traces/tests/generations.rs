//! Each generation of each agent's records gives exactly the calls that were written into the fixtures. The fixtures are
//! made by hand: after real files where a capture exists (`captures`), after descriptions of the format where none does
//! (Codex rollouts 1 to 3, code mode with several operations, Claude Code to 2.1.1x, sub-agents of both, what Codex prints of
//! later kinds). The content of all of them is made up.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::unnecessary_wraps,
    reason = "a test may fail loudly"
)]

use pretty_assertions::assert_eq;
use proctor_traces::{Call, Format, Moment, Nesting, Records, SaidKind, SourceFile, Trace, Usage, sources};

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(name: &str) -> Records {
    sources::read(&fixture(name), None, None).unwrap()
}

fn join(names: &[&str]) -> Trace {
    let file = |name: &&str| SourceFile {
        name: (*name).to_owned(),
        bytes: fixture(name),
        format: None,
        arrivals: None,
    };
    Trace::read(&names.iter().map(file).collect::<Vec<_>>(), None).unwrap()
}

/// A call in one line: id, tool, what it does, how it went, when (seconds of the fixture), what it hangs on.
fn show(call: &Call) -> String {
    let key = call.command().or_else(|| call.path().map(str::to_owned));
    let key = key.map(|key| format!(" `{}`", key.lines().next().unwrap_or_default())).unwrap_or_default();
    let exit = call.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
    let images = if call.images.is_empty() { String::new() } else { format!(" +{}", call.images.len()) };
    let status = serde_json::to_value(call.status).unwrap();
    let second =
        |at: Option<Moment>| at.map_or("-".to_owned(), |it| format!("{}", (it.ms % 60_000) as f64 / 1000.0));
    let returned = call.returned.map(|at| format!(" answered {}", second(Some(at)))).unwrap_or_default();
    let parent = call.parent.as_ref().map(|it| it.0.as_str()).unwrap_or("?");
    let inside = match call.nesting {
        Nesting::Top => String::new(),
        Nesting::Program => format!(" in {parent}"),
        Nesting::SubAgent => format!(" by {} of {parent}", call.agent.as_deref().unwrap_or("?")),
    };
    let polls = call.polls.as_ref().map(|it| format!(" polls {}", it.0)).unwrap_or_default();
    format!(
        "{} {}{key} {}{exit}{images} {}..{}{returned}{inside}{polls}",
        call.id.0,
        call.name,
        status.as_str().unwrap(),
        second(call.start),
        second(call.end)
    )
}

fn shown(calls: &[Call]) -> Vec<String> {
    calls.iter().map(show).collect()
}

fn said(records: &Records, kind: SaidKind) -> Vec<&str> {
    records.said.iter().filter(|it| it.kind == kind).map(|it| it.text.as_str()).collect()
}

fn tokens(input: u64, cached: u64, output: u64, reasoning: u64) -> Option<Usage> {
    Some(Usage {
        input_tokens: input,
        cached_input_tokens: cached,
        output_tokens: output,
        reasoning_tokens: reasoning,
    })
}

#[test]
fn codex_rollouts_before_the_envelope() {
    let records = read("codex-rollout-1");
    assert_eq!(records.format, Format::CodexRollout);
    assert_eq!(
        shown(&records.calls),
        [
            "call_a shell `cat TASK.md` ok 0 -..-",
            "call_b local_shell `ls -l 'my dir'` failed 2 -..-",
            "call_c update_plan ok -..-",
            "call_d shell unfinished -..-",
        ]
    );
    assert_eq!(records.calls[0].output, "# Task\n");
    assert_eq!(said(&records, SaidKind::Prompt), ["Draw it.", "Once more."]);
    assert_eq!((records.turns, records.calls[3].turn), (2, 2));
    assert_eq!((records.counts.unknown_total(), records.counts.malformed), (0, 0));
}

#[test]
fn codex_rollouts_with_envelope_and_polling() {
    let records = read("codex-rollout-2");
    assert_eq!(
        shown(&records.calls),
        [
            "call_1 view_image `source.png` ok 1.2..1.3",
            "call_2 shell_command `dot -Tpng a.dot -o a.png` failed 1 2..2.5",
            "call_3 apply_patch ok 0 3..3.1",
            "call_4 exec_command `make` ok 0 4..8.5 answered 5",
            "call_5 write_stdin ok 6..7 polls call_4",
            "call_6 write_stdin ok 0 8..8.5 polls call_4",
            "call_7 shell `sleep 60` unfinished 9.6..12",
        ]
    );
    assert_eq!(records.calls[3].output, "one\ntwo\n");
    assert_eq!(said(&records, SaidKind::Text), ["I look."]);
    assert_eq!(said(&records, SaidKind::Reasoning), ["Look first."]);
    assert_eq!(said(&records, SaidKind::Prompt), ["Draw it.", "And now?"]);
    assert_eq!((records.turns, records.calls[6].turn), (2, 2));
    assert_eq!(records.usage.total, tokens(250, 90, 30, 5));
    assert_eq!(records.meta.session.as_deref(), Some("own"));
    assert_eq!(records.meta.parent_session.as_deref(), Some("old"));
    assert_eq!(records.meta.model.as_deref(), Some("gpt-5.2-codex"));
    assert_eq!((records.counts.unknown_total(), records.counts.malformed), (0, 0));
}

#[test]
fn codex_rollouts_with_items() {
    let records = read("codex-rollout-3");
    assert_eq!(
        shown(&records.calls),
        [
            "call_1 exec_command `apply_patch <<'EOF'` ok 0 1.1..1.3",
            "call_2 mcp__files__read `x` failed 2..2.4",
            "call_3 exec_command `rm -rf /` declined 3..3",
            "call_4 exec_command `false` failed 1 1.5..1.6",
        ]
    );
    assert_eq!(said(&records, SaidKind::Prompt), ["Draw it."]);
    assert_eq!(said(&records, SaidKind::Text), ["I write it."]);
    assert_eq!(
        records.counts.unknown.iter().collect::<Vec<_>>(),
        [(&"item_completed/HologramView".to_owned(), &1)]
    );
    assert_eq!(said(&records, SaidKind::Raw).len(), 1);
}

#[test]
fn what_codex_prints_is_found_again_in_its_session() {
    let trace = join(&["codex-exec-3", "codex-rollout-3"]);
    // The order is that of the session, although its clock was set back.
    let ids: Vec<&str> = trace.calls.iter().map(|call| call.id.0.as_str()).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3", "call_4"]);
    assert!(trace.calls.iter().all(|call| call.seen_by.len() == 2), "{:#?}", trace.calls);
    let rules: Vec<&str> = trace.findings().iter().map(|it| it.rule).collect();
    assert!(rules.contains(&"backwards") && rules.contains(&"unknown_records"), "{rules:?}");
}

#[test]
fn codex_rollouts_with_ordinals_and_a_sub_agent() {
    let trace = join(&["codex-rollout-4-child", "codex-rollout-4"]);
    assert_eq!(
        shown(&trace.calls),
        [
            "call_s spawn_agent ok 0.8..0.9",
            "call_k exec_command `python3 bars.py` ok 0 2.3..2.8 by child of call_s",
            "call_w wait_agent ok 1.8..4.8",
        ]
    );
    // Each response once, the sub-agent's too.
    assert_eq!(trace.usage.session, tokens(100 + 150 + 70, 50 + 75 + 35, 15, 3));
    let prompts: Vec<_> = trace.said.iter().filter(|it| it.kind == SaidKind::Prompt).collect();
    assert_eq!(
        prompts.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(),
        ["Draw it.", "Measure the bars."]
    );
    assert_eq!(prompts[1].agent.as_deref(), Some("child"));
    assert_eq!(trace.turns, 1);
    let unknown: Vec<_> = trace.sources.iter().flat_map(|it| it.counts.unknown.keys()).collect();
    assert_eq!(unknown, ["brand_new_thing"]);
}

#[test]
fn programs_of_code_mode_hold_their_operations() {
    let trace = join(&["codex-exec-5", "codex-rollout-5"]);
    assert_eq!(
        shown(&trace.calls),
        [
            "call_1 exec ok +1 0..0.4",
            "exec-v view_image `/work/source.png` ok +1 0.2..0.2 in call_1",
            "exec-l exec_command `ls` ok 0 0.1..0.3 in call_1",
            "call_2 exec ok 1..13.1 answered 11",
            "call_3 wait ok 11.5..13.1 polls call_2",
            "exec-m exec_command `make all` failed 2 1.1..13 in call_2",
            "call_4 exec ok 14..14",
            "call_5 exec unfinished 15..-",
            "turn-1/item_2 exec_command `sleep 99` unfinished -..- in call_5",
        ]
    );
    let tally = trace.tally();
    assert_eq!((tally.outer, tally.inner, tally.unfinished), (5, 4, 2));
    // The program's answer has the bytes, its operation knows the path: each has both.
    let digest = trace.calls[0].images[0].digest;
    assert!(digest.is_some() && trace.calls[1].images[0].digest == digest);
    assert_eq!(trace.calls[0].images[0].path.as_deref(), Some("/work/source.png"));
}

#[test]
fn claude_transcripts_with_side_chains() {
    let records = read("claude-transcript-1.0");
    assert_eq!(records.format, Format::ClaudeTranscript);
    assert_eq!(
        shown(&records.calls),
        [
            "toolu_t1 Task ok 1.1..3",
            "toolu_t2 Task ok 1.2..3.1",
            "toolu_x Bash `python3 axis.py` ok 0 2..2.5 by toolu_t2 of toolu_t2",
            "toolu_b Grep ok 2.1..2.4 by toolu_t1 of toolu_t1",
            "toolu_e Edit `/work/a.html` failed 4..4.1",
        ]
    );
    // m1, mx, mb and m2, once each; what the CLI makes up counts nothing.
    assert_eq!(records.usage.total, tokens(4 * 110, 400, 20, 0));
    assert_eq!(said(&records, SaidKind::Prompt), ["Draw it.", "Measure the axis.", "Measure the bars."]);
    assert_eq!(records.turns, 1);
}

#[test]
fn claude_transcripts_with_nested_progress_and_background_tasks() {
    let records = read("claude-transcript-2.1");
    assert_eq!(
        shown(&records.calls),
        [
            "toolu_t Agent ok 1..3",
            "toolu_k Read `/work/source.png` ok +1 2..2.5 by a1b2 of toolu_t",
            "toolu_bg Bash `serve` failed 2 5..8 answered 5.1",
            "toolu_o TaskOutput ok 6..6.1 polls toolu_bg",
        ]
    );
    assert_eq!(records.turns, 2);
    assert_eq!(records.counts.unknown.keys().collect::<Vec<_>>(), ["dream-journal"]);
}

#[test]
fn a_sub_agent_told_of_three_times_is_one() {
    let trace = join(&["claude-agent-a1b2", "claude-stream", "claude-transcript-2.1"]);
    let ids: Vec<&str> = trace.calls.iter().map(|call| call.id.0.as_str()).collect();
    assert_eq!(ids, ["toolu_t", "toolu_k", "toolu_l", "toolu_bg", "toolu_9", "toolu_o"]);
    let l = trace.calls.iter().find(|call| call.id.0 == "toolu_l").unwrap();
    assert_eq!(
        (l.parent.as_ref().unwrap().0.as_str(), l.agent.as_deref(), l.exit_code),
        ("toolu_t", Some("a1b2"), Some(1))
    );
    let k = trace.calls.iter().find(|call| call.id.0 == "toolu_k").unwrap();
    assert_eq!((k.agent.as_deref(), k.images.len(), k.seen_by.len()), (Some("a1b2"), 1, 2));
    // m1, mk (told twice), m5, m6 and ml.
    assert_eq!(trace.usage.session, tokens(5 * 110, 500, 25, 0));
}

#[test]
fn a_resumed_claude_goes_on_counting_by_model_and_not_by_result() {
    let records = read("claude-stream");
    assert_eq!(records.usage.total, tokens(30 + 300, 300, 19, 0));
    assert_eq!((records.turns, records.calls.last().unwrap().turn), (2, 2));
    assert_eq!(shown(&records.calls).last().unwrap(), "toolu_9 Bash `ls` declined 5..6");
}

#[test]
fn what_codex_prints_of_later_kinds() {
    let records = read("codex-exec-late");
    assert_eq!(
        shown(&records.calls),
        [
            "turn-1/item_1.1 update_plan ok -..-",
            "turn-1/item_3 spawn_agent ok -..-",
            "turn-1/item_4 web_search ok -..-",
            "turn-1/item_1.2 update_plan ok -..-",
            "turn-2/item_0 exec_command `ls` ok 0 -..-",
            "turn-2/item_1 exec_command `make` unfinished -..-"
        ]
    );
    assert_eq!(records.counts.unknown.keys().collect::<Vec<_>>(), ["request_user_input"]);
    assert_eq!((records.turns, records.counts.malformed), (2, 0));
    assert!(records.usage.is_lower_bound, "it ended without a word");
}

#[test]
fn claude_transcripts_with_records_of_its_own_affairs() {
    let records = read("claude-transcript-late");
    assert_eq!(
        shown(&records.calls),
        ["toolu_a Bash `ls` failed 2 1.01..0.9", "toolu_b Read `/work/source.png` ok +1 1.02..2"]
    );
    assert_eq!(records.usage.total, tokens(110, 100, 5, 0), "one message, told of four times");
    assert_eq!(said(&records, SaidKind::Prompt), ["Draw it."]);
    assert_eq!((records.counts.unknown_total(), records.counts.malformed), (0, 0), "{:?}", records.counts);
}

#[test]
fn opencode_streams() {
    let records = read("opencode");
    assert_eq!(records.format, Format::Opencode);
    assert_eq!(
        shown(&records.calls),
        [
            "call_a bash `dot -Tpng a.dot` failed 1 1..2.4",
            "call_b read `/work/source.png` ok +1 2.6..2.9",
            "call_c grep ok 4..4.5",
            "call_d bash `rm -rf /` declined 5.5..5.6"
        ]
    );
    assert_eq!(records.calls[2].agent.as_deref(), Some("ses_child"), "another session is a sub-agent");
    assert_eq!(records.usage.total, tokens(160, 50, 25, 5));
    assert_eq!(said(&records, SaidKind::Notice), ["overloaded"]);
    assert_eq!(records.counts.unknown.keys().collect::<Vec<_>>(), ["hologram"]);
}

#[test]
fn gemini_streams_and_sessions() {
    let stream = read("gemini-stream");
    assert_eq!(stream.format, Format::GeminiStream);
    assert_eq!(
        shown(&stream.calls),
        [
            "run-1 run_shell_command `ls` failed 1..2.5",
            "read-2 read_file `/work/source.png` ok 1.1..2",
            "run-3 run_shell_command `sleep 99` unfinished 3..-"
        ]
    );
    assert_eq!(said(&stream, SaidKind::Text), ["I look."]);
    assert_eq!(stream.usage.total, tokens(100, 40, 35, 5));
    let session = read("gemini-session");
    assert_eq!(session.format, Format::GeminiSession);
    assert_eq!(
        shown(&session.calls),
        [
            "run-1 run_shell_command `ls` failed 0.9..2.5",
            "read-2 read_file `/work/source.png` ok +1 3..3.2",
            "run-3 run_shell_command `sleep 99` unfinished 3..-"
        ]
    );
    // Messages are told of again and again; what sets up the conversation is nobody's prompt.
    assert_eq!((said(&session, SaidKind::Prompt), session.turns), (vec!["Draw it."], 1));
    assert_eq!(said(&session, SaidKind::Reasoning), ["Look first."]);
    assert_eq!(session.usage.total, tokens(100, 40, 25, 5));
    assert_eq!(session.counts.unknown.keys().collect::<Vec<_>>(), ["hologram"]);
    let joined = join(&["gemini-session", "gemini-stream"]);
    assert_eq!((joined.calls.len(), joined.turns), (3, 1));
}

#[test]
fn qwen_streams_and_sessions() {
    let stream = read("qwen-stream");
    assert_eq!(stream.format, Format::QwenStream);
    assert_eq!(
        shown(&stream.calls),
        ["call_a run_shell_command `ls` failed -..-", "call_b read_file `/work/source.png` unfinished -..-"]
    );
    let session = read("qwen-session");
    assert_eq!(session.format, Format::QwenSession);
    assert_eq!(
        shown(&session.calls),
        [
            "call_a run_shell_command `ls` failed 2 1.2..2.51",
            "call_b read_file `/work/source.png` unfinished 3..-"
        ]
    );
    assert_eq!(session.usage.total, tokens(300, 40, 50, 5));
    assert_eq!(session.counts.unknown.keys().collect::<Vec<_>>(), ["system/dream_journal"]);
    let joined = join(&["qwen-session", "qwen-stream"]);
    assert_eq!((joined.calls.len(), joined.turns), (2, 1));
}

#[test]
fn pi_streams_and_sessions() {
    let stream = read("pi-stream");
    assert_eq!(stream.format, Format::PiStream);
    assert_eq!(
        shown(&stream.calls),
        ["call_a bash `ls` failed 1..2.5", "call_b read `/work/source.png` unfinished 3..-"]
    );
    assert_eq!(stream.usage.total, tokens(300, 40, 50, 0));
    let session = read("pi-session");
    assert_eq!(session.format, Format::PiSession);
    assert_eq!(
        shown(&session.calls),
        ["call_a bash `ls` failed 1.5..2.5", "call_b read `/work/source.png` unfinished 3.1..-"]
    );
    assert_eq!(session.usage.total, tokens(300, 40, 50, 0));
    assert_eq!(said(&session, SaidKind::Notice), ["overloaded", "the conversation was compacted"]);
    let joined = join(&["pi-session", "pi-stream"]);
    assert_eq!((joined.calls.len(), joined.turns), (2, 1));
}

#[test]
fn a_trace_written_as_a_journal_reads_the_same() {
    for names in [
        &["codex-rollout-2"][..],
        &["codex-exec-5", "codex-rollout-5"],
        &["claude-agent-a1b2", "claude-transcript-2.1"],
        &["codex-rollout-4-child", "codex-rollout-4"],
        &["codex-rollout-1"],
    ] {
        let trace = join(names);
        let mut lines = Vec::new();
        for event in trace.to_events() {
            serde_json::to_writer(&mut lines, &event).unwrap();
            lines.push(b'\n');
        }
        let again = Trace::of_records("trace.jsonl", sources::read(&lines, None, None).unwrap());
        assert_eq!(shown(&again.calls), shown(&trace.calls), "{names:?}");
        let words = |trace: &Trace| {
            trace.said.iter().map(|it| (it.kind, it.text.clone(), it.seq)).collect::<Vec<_>>()
        };
        assert_eq!(words(&again), words(&trace), "{names:?}");
        assert_eq!(
            (again.zero, again.turns, again.usage.agent()),
            (trace.zero, trace.turns, trace.usage.agent())
        );
        let who = |trace: &Trace| {
            let meta = trace.meta.clone();
            (trace.agent.clone(), meta.session, meta.version, meta.model, meta.cwd)
        };
        assert_eq!(who(&again), who(&trace), "{names:?}");
        assert!(who(&again).0.is_some(), "{names:?}");
    }
}

#[test]
fn files_of_different_sessions_are_not_one_trace() {
    let file = |name: &&str| SourceFile {
        name: (*name).to_owned(),
        bytes: fixture(name),
        format: None,
        arrivals: None,
    };
    let files = |names: &[&str]| names.iter().map(file).collect::<Vec<_>>();
    let refused = |names: &[&str]| Trace::of_one_session(&files(names), None).unwrap_err().to_string();
    // Those that belong together: sub-agents, and the stream of a session.
    for together in [
        &["codex-rollout-4", "codex-rollout-4-child"][..],
        &["claude-transcript-2.1", "claude-agent-a1b2"],
        &["codex-exec-3", "codex-rollout-3"],
        &["codex-rollout-4-child"],
    ] {
        assert_eq!(Trace::of_one_session(&files(together), None).unwrap(), join(together), "{together:?}");
    }
    for (apart, named) in [
        (&["codex-rollout-1", "codex-rollout-2"][..], "2 sessions"),
        (&["codex-rollout-4", "claude-transcript-2.1"], "claude-code"),
        (&["codex-rollout-4", "codex-rollout-4-child", "codex-rollout-2"], "2 sessions"),
        (&["gemini-session", "qwen-session", "pi-session"], "3 sessions"),
        (&["codex-exec-3", "codex-exec-3"], "only one"),
    ] {
        let said = refused(apart);
        assert!(said.contains(named) && apart.iter().any(|it| said.contains(it)), "{said}");
    }
    let traces =
        Trace::of_sessions(&files(&["codex-rollout-4", "codex-rollout-2", "codex-rollout-4-child"])).unwrap();
    assert_eq!(traces, [join(&["codex-rollout-4", "codex-rollout-4-child"]), join(&["codex-rollout-2"])]);
}

#[test]
fn a_session_resumed_into_a_new_file_is_still_one() {
    let old = String::from_utf8(fixture("claude-transcript-1.0")).unwrap();
    let id = old.split("\"sessionId\":\"").nth(1).unwrap().split('"').next().unwrap();
    let resumed = old.replace(id, "resumed");
    let file = |name: &str, text: &str| SourceFile {
        name: name.to_owned(),
        bytes: text.as_bytes().to_vec(),
        format: None,
        arrivals: None,
    };
    let together = Trace::of_one_session(&[file("a", &old), file("b", &resumed)], None).unwrap();
    assert_eq!(together.calls, join(&["claude-transcript-1.0"]).calls);
    // The same ids at other times are another session's: scripted models give the same ids to all.
    let year = &old.split("\"timestamp\":\"").nth(1).unwrap()[..4];
    let other = resumed.replace(&format!("\"timestamp\":\"{year}"), "\"timestamp\":\"2001");
    assert!(Trace::of_one_session(&[file("a", &old), file("b", &other)], None).is_err());
}
