//! Whatever a call holds, it is read in bounded time and space, and twice the same way.

use proctor_traces::actions::Session;
use proctor_traces::{Call, Nesting, ToolCallId, ToolStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

fn call(at: usize, name: &str, input: Value) -> Call {
    Call {
        id: ToolCallId(format!("c{at}")),
        seq: 0,
        turn: 1,
        name: name.to_owned(),
        input,
        parent: None,
        nesting: Nesting::Top,
        agent: None,
        polls: None,
        issued: None,
        start: None,
        end: None,
        returned: None,
        status: ToolStatus::Ok,
        exit_code: None,
        output: String::new(),
        output_bytes: 0,
        truncated: false,
        images: Vec::new(),
        seen_by: Vec::new(),
    }
}

fn session(calls: Vec<Call>) -> Session<'static> {
    Session { calls: calls.into(), ..Session::default() }
}

/// The same text in every place where a text is taken apart.
fn everywhere(text: &str) -> Session<'static> {
    let here = format!("python3 - <<'PY'\n{text}\nPY\n");
    let inputs = [
        ("Bash", json!({ "command": text })),
        ("Bash", json!({ "command": here })),
        ("exec", json!(text)),
        ("exec", json!({ "input": format!("await tools.exec_command({{cmd: String.raw`{text}`}})") })),
        ("apply_patch", json!(format!("*** Begin Patch\n*** Update File: artifact.html\n{text}"))),
        ("Write", json!({ "file_path": text, "content": text })),
        ("Read", json!({ "file_path": text })),
        ("Task", json!({ "prompt": text })),
        ("TodoWrite", json!({ "todos": [text] })),
        ("Bash", json!({ "command": format!("bash -c '{text}'") })),
        ("Bash", json!({ "command": format!("cat > x.py <<'E'\n{text}\nE\npython3 x.py") })),
    ];
    session(inputs.into_iter().enumerate().map(|(at, (name, input))| call(at, name, input)).collect())
}

/// What scripts are made of, so that chance meets the grammars.
fn scrap() -> impl Strategy<Value = String> {
    let words = vec![
        "$(",
        ")",
        "{ ",
        "}",
        "((",
        "))",
        "`",
        "'",
        "\"",
        "<<E",
        "\nE\n",
        "\n",
        "; ",
        " | ",
        " && ",
        "for x in a b; do ",
        " done",
        "if ",
        " then ",
        " fi",
        "case x in a) ",
        " ;; esac",
        "f() ",
        "$x",
        "${x%",
        "}",
        "convert ",
        "source.png ",
        "-crop 1x1+1+1 ",
        "artifact.html ",
        "python3 -c '",
        "python3 - <<'E'\n",
        "import os\n",
        "def f(a):\n",
        "    return f(a)\n",
        "f(",
        "[",
        "]",
        "x = ",
        "open('artifact.html','w')",
        ".write(",
        "f'{x}'",
        "for a in b:\n  ",
        "while True:\n",
        "subprocess.run([",
        "'''",
        "# ",
        "\\",
        "\u{0}",
        "é",
        "🖋",
        "*",
        "xargs ",
        "eval ",
        "bash -c ",
        "source a ",
        "tools.exec_command({cmd: `",
        "${",
        "text(",
        "sed -i s/a/b/ ",
        "tee ",
        "> ",
        "< ",
        "<(",
        "if x: ",
        "lambda: ",
        "%d' % ",
        "**",
        "1",
        "-",
    ];
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn scraps_of_scripts_are_read_twice_the_same_way(text in scrap()) {
        let session = everywhere(&text);
        let once = session.classify();
        prop_assert_eq!(once.len(), session.calls.len());
        prop_assert_eq!(once, session.classify());
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,200}") {
        prop_assert_eq!(everywhere(&text).classify().len(), 11);
    }
}

#[test]
fn depth_is_bounded() {
    for open in [
        "(",
        "$(",
        "{ ",
        "`",
        "[",
        "f(",
        "if a; then ",
        "for x in a; do ",
        "case a in b) ",
        "<(",
        "\"$(",
        "!",
        "f() ",
        "- ",
        "{a,b}",
        "not ",
        "bash -c \"",
        "lambda: ",
        "eval ",
    ] {
        assert_eq!(everywhere(&open.repeat(20_000)).classify().len(), 11, "{open}");
    }
}

#[test]
fn a_script_that_calls_itself_comes_to_an_end() {
    let shell = "f() { f; f; f; convert source.png -crop 9x9+1+1 /tmp/a.png; }; f; for a in 1 2 3; do for b in 1 2 3; do for c in 1 2 3; do f; done; done; done";
    let python = "def f(x):\n    f(x)\n    f(x)\n    f(x)\n    for i in range(9):\n        f(i)\nf(1)\n";
    let file = "cat > a.sh <<'E'\nbash a.sh; bash a.sh; . ./a.sh\nE\nbash a.sh; source a.sh";
    for text in [shell, python, file] {
        assert_eq!(everywhere(text).classify().len(), 11);
    }
}

/// In a square of its length, 200 kB of any of these would take minutes.
#[test]
fn a_program_that_makes_much_of_little_is_read_like_any_other() {
    let steps = [
        "a = a + a",
        "a = a / a",
        "a = f'{a}{a}{a}{a}'",
        "a = '%s%s' % (a, a)",
        "a = '{}{}'.format(a)",
        "a = os.path.join(a, a)",
        "a, b = b, a + b",
        "a += a",
        "b = [a, a]\na = b + b",
        "a = a.replace('x', a) + a",
    ];
    for step in steps {
        let lines = vec![step; 200].join("\n");
        let code = format!("a = 'x'\nb = 'y'\n{lines}\nopen(a)\nopen('artifact.html', 'w').write(a)");
        let wide: String = (0..5_000).fold(code.clone(), |code, at| code + &format!("\nc{at} = a"));
        for code in [code, wide] {
            let labelled = everywhere(&code).classify();
            assert_eq!(labelled.len(), 11);
        }
    }
}

#[test]
fn long_texts_are_read_in_one_go() {
    let shapes = [
        "echo a b c | grep x && cat TASK.md\n",
        "x = np.where(a[1:2, 3] < 4)[0] - b\n",
        "'\"'\"'",
        "a=$(b ",
        "<<E ",
        "${",
        "[",
        "(1,2) ",
        "`x",
        "{ ",
        "\\\n",
        "f'{a}' ",
        "font-family: x;\n",
        "*** Add File: a\n+x\n",
    ];
    for shape in shapes {
        assert_eq!(everywhere(&shape.repeat(200_000 / shape.len())).classify().len(), 11, "{shape}");
    }
    let line = "echo 'a b' | grep -c x > /dev/null && sed -n 1,2p artifact.html\n".repeat(48_000);
    assert!(line.len() > 3_000_000);
    assert_eq!(session(vec![call(0, "Bash", json!({ "command": line }))]).classify().len(), 1);
}
