//! The tools that a request declares, and a script's calls mapped onto them.

use std::collections::BTreeMap;
use std::time::Duration;

use proctor_traces::WireFormat;
use serde_json::{Map, Value, json};

use crate::script::{Call, Script};

/// A declared tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tool {
    /// Its name.
    pub(crate) name: String,
    /// Whether it takes free text instead of a JSON object.
    pub(crate) custom: bool,
    /// Its arguments, by name.
    arguments: BTreeMap<String, Argument>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Argument {
    array: bool,
    in_seconds: bool,
}

/// A call as it goes over the wire.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireCall {
    /// Name of the tool.
    pub(crate) name: String,
    /// What it is given.
    pub(crate) input: Input,
}

/// What a tool is given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// Named arguments.
    Object(Map<String, Value>),
    /// Free text.
    Text(String),
}

/// The request declares no tool that could do it.
#[derive(Debug, thiserror::Error)]
#[error("the script asks for a `{wanted}` call, and none of the declared tools can do it: {}", declared.join(", "))]
pub(crate) struct NoTool {
    wanted: &'static str,
    declared: Vec<String>,
}

/// Tools that run a command line, best first, and the names of the argument that holds it.
const SHELLS: [&str; 7] =
    ["exec_command", "Bash", "bash", "shell_command", "shell", "run_shell_command", "execute_command"];
const SHELL_PATTERNS: [&str; 4] = ["shell", "bash", "terminal", "run_command"];
const COMMAND_ARGUMENTS: [&str; 3] = ["cmd", "command", "script"];
const TIMEOUT_ARGUMENTS: [&str; 3] = ["yield_time_ms", "timeout_ms", "timeout"];

const VIEWERS: [&str; 5] = ["view_image", "Read", "read", "read_file", "view"];
const VIEWER_PATTERNS: [&str; 2] = ["image", "read"];
const WRITERS: [&str; 4] = ["Write", "write", "write_file", "create_file"];
const WRITER_PATTERNS: [&str; 1] = ["write"];
const PATH_ARGUMENTS: [&str; 4] = ["path", "file_path", "filePath", "absolute_path"];
const CONTENT_ARGUMENTS: [&str; 2] = ["content", "contents"];

/// Codex returns from a command after 10 s unless told otherwise, and then the script would run ahead of it.
const YIELD: Duration = Duration::from_secs(30);

/// Linux takes at most 128 KiB in one argument of a program.
const COMMAND_CAP: usize = 120 << 10;

impl Tool {
    /// All tools that a request body declares.
    pub(crate) fn declared(wire: WireFormat, body: &Value) -> Vec<Self> {
        let mut tools = Vec::new();
        collect(wire, &body["tools"], &mut tools);
        if wire == WireFormat::OpenaiResponses {
            // Codex's code mode declares them in an item of the conversation.
            for item in body["input"].as_array().into_iter().flatten() {
                if item["type"] == "additional_tools" {
                    collect(wire, &item["tools"], &mut tools);
                }
            }
        }
        tools
    }

    fn argument(&self, names: &[&'static str]) -> Option<(&'static str, &Argument)> {
        names.iter().find_map(|name| Some((*name, self.arguments.get(*name)?)))
    }
}

fn collect(wire: WireFormat, declared: &Value, tools: &mut Vec<Tool>) {
    for tool in declared.as_array().into_iter().flatten() {
        if tool["type"] == "namespace" {
            for inner in tool["tools"].as_array().into_iter().flatten() {
                tools.extend(one(inner, "parameters"));
            }
            continue;
        }
        if wire == WireFormat::GeminiGenerate {
            for inner in tool["functionDeclarations"].as_array().into_iter().flatten() {
                // Of the two ways to give the schema, the newer.
                let schema = if inner["parametersJsonSchema"].is_object() {
                    "parametersJsonSchema"
                } else {
                    "parameters"
                };
                tools.extend(one(inner, schema));
            }
            continue;
        }
        tools.extend(match wire {
            WireFormat::OpenaiResponses | WireFormat::GeminiGenerate => one(tool, "parameters"),
            WireFormat::OpenaiChat | WireFormat::OpenaiImages => one(&tool["function"], "parameters"),
            WireFormat::AnthropicMessages => one(tool, "input_schema"),
        });
    }
}

fn one(tool: &Value, schema: &str) -> Option<Tool> {
    let name = tool["name"].as_str()?.to_owned();
    let properties = tool[schema]["properties"].as_object();
    let arguments = properties.into_iter().flatten().map(|(name, property)| {
        let description = property["description"].as_str().unwrap_or_default().to_lowercase();
        let in_seconds = description.contains("second") && !description.contains("milli");
        (name.clone(), Argument { array: property["type"] == "array", in_seconds })
    });
    Some(Tool { name, custom: tool["type"] == "custom", arguments: arguments.collect() })
}

impl Call {
    /// This call as a call of one of `tools`.
    pub(crate) fn on_wire(&self, script: &Script, tools: &[Tool]) -> Result<WireCall, NoTool> {
        let none = |wanted| NoTool { wanted, declared: tools.iter().map(|tool| tool.name.clone()).collect() };
        match self {
            Self::Shell { command, timeout } => shell(command, *timeout, tools).ok_or_else(|| none("shell")),
            Self::ViewImage { path } => view(script, path, tools).ok_or_else(|| none("view_image")),
            Self::Write { path, content } => write(script, path, content, tools).ok_or_else(|| none("write")),
            Self::Tool { name, arguments } => {
                let custom = tools.iter().any(|tool| tool.custom && tool.name == *name);
                let text = arguments.get("input").and_then(Value::as_str).filter(|_| custom);
                let input = match text {
                    Some(text) => Input::Text(text.to_owned()),
                    None => Input::Object(arguments.clone()),
                };
                Ok(WireCall { name: name.clone(), input })
            }
        }
    }
}

fn shell(command: &str, timeout: Option<Duration>, tools: &[Tool]) -> Option<WireCall> {
    let Some((tool, [(name, argument)])) = choose(tools, &SHELLS, &SHELL_PATTERNS, [&COMMAND_ARGUMENTS])
    else {
        return in_code_mode(tools)
            .then(|| object("exec_command", json!({"cmd": command, "yield_time_ms": millis(timeout)})));
    };
    let mut input = Map::new();
    let command_line = if argument.array { json!(["bash", "-lc", command]) } else { json!(command) };
    input.insert(name.to_owned(), command_line);
    if let Some((name, argument)) = tool.argument(&TIMEOUT_ARGUMENTS) {
        if name == "yield_time_ms" || timeout.is_some() {
            let value = millis(timeout);
            let value = if argument.in_seconds { value.div_ceil(1000) } else { value };
            input.insert(name.to_owned(), json!(value));
        }
    }
    if tool.arguments.contains_key("description") {
        input.insert("description".to_owned(), json!("A step of the script"));
    }
    if tool.arguments.contains_key("is_background") {
        input.insert("is_background".to_owned(), json!(false));
    }
    Some(WireCall { name: tool.name.clone(), input: Input::Object(input) })
}

fn view(script: &Script, path: &str, tools: &[Tool]) -> Option<WireCall> {
    let Some((tool, [(name, _)])) = choose(tools, &VIEWERS, &VIEWER_PATTERNS, [&PATH_ARGUMENTS]) else {
        return in_code_mode(tools).then(|| object("view_image", json!({"path": path})));
    };
    Some(object(&tool.name, json!({ name: path_for(script, tool, path) })))
}

/// A patch where there is a tool for it, a file writing tool where there is one, else a here-document: all three
/// write new files and overwrite old ones, which a patch that edits could not do without knowing the old content.
fn write(script: &Script, path: &str, content: &str, tools: &[Tool]) -> Option<WireCall> {
    if let Some(tool) = tools.iter().find(|tool| tool.name == "apply_patch") {
        if let Some(patch) = add_file_patch(path, content) {
            let name = tool.name.clone();
            return Some(if tool.custom {
                WireCall { name, input: Input::Text(patch) }
            } else {
                object(&name, json!({ "input": patch }))
            });
        }
    }
    let arguments = [PATH_ARGUMENTS.as_slice(), CONTENT_ARGUMENTS.as_slice()];
    if let Some((tool, [(path_name, _), (content_name, _)])) =
        choose(tools, &WRITERS, &WRITER_PATTERNS, arguments)
    {
        let path = path_for(script, tool, path);
        return Some(object(&tool.name, json!({ path_name: path, content_name: content })));
    }
    let command = here_document(path, content);
    if command.len() > COMMAND_CAP {
        return None;
    }
    shell(&command, None, tools)
}

/// The first tool of an exact name, else of a telling one, that has an argument from each list.
fn choose<'a, const N: usize>(
    tools: &'a [Tool],
    names: &[&str],
    patterns: &[&str],
    arguments: [&[&'static str]; N],
) -> Option<(&'a Tool, [(&'static str, &'a Argument); N])> {
    let exact = names.iter().flat_map(|name| tools.iter().filter(move |tool| tool.name == *name));
    let telling = patterns
        .iter()
        .flat_map(|pattern| tools.iter().filter(move |tool| tool.name.to_lowercase().contains(pattern)));
    exact.chain(telling).filter(|tool| !tool.custom).find_map(|tool| {
        let found: Vec<_> = arguments.iter().map_while(|names| tool.argument(names)).collect();
        Some((tool, found.try_into().ok()?))
    })
}

/// Codex's code mode declares one tool for programs, and takes plain calls of the tools inside all the same.
fn in_code_mode(tools: &[Tool]) -> bool {
    tools.iter().any(|tool| tool.custom && tool.name == "exec")
}

/// Only Codex resolves relative paths against the workspace by rule.
fn path_for(script: &Script, tool: &Tool, path: &str) -> String {
    if tool.name == "view_image" { path.to_owned() } else { script.absolute(path) }
}

fn millis(timeout: Option<Duration>) -> u64 {
    u64::try_from(timeout.unwrap_or(YIELD).as_millis()).unwrap_or(u64::MAX)
}

fn object(name: &str, input: Value) -> WireCall {
    let input = match input {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    WireCall { name: name.to_owned(), input: Input::Object(input) }
}

/// None where the patch format cannot say it: it knows whole lines only.
fn add_file_patch(path: &str, content: &str) -> Option<String> {
    if path.contains('\n') || content.contains('\r') {
        return None;
    }
    let lines = content.strip_suffix('\n')?;
    let mut patch = format!("*** Begin Patch\n*** Add File: {path}\n");
    for line in lines.split('\n') {
        patch.push('+');
        patch.push_str(line);
        patch.push('\n');
    }
    patch.push_str("*** End Patch\n");
    Some(patch)
}

fn here_document(path: &str, content: &str) -> String {
    let quoted = format!("'{}'", path.replace('\'', r"'\''"));
    let mut end = "END_OF_FILE".to_owned();
    while content.lines().any(|line| line == end) {
        end.push('_');
    }
    let make_parent = match path.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => {
            format!("mkdir -p '{}' && ", parent.replace('\'', r"'\''"))
        }
        _ => String::new(),
    };
    // A here-document always ends with a newline; one that the file does not have is cut off again.
    let (command, newline) =
        if content.is_empty() || content.ends_with('\n') { ("cat", "") } else { ("head -c -1", "\n") };
    format!("{make_parent}{command} > {quoted} <<'{end}'\n{content}{newline}{end}\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn declared(wire: WireFormat, text: &str) -> Vec<Tool> {
        Tool::declared(wire, &serde_json::from_str(text).unwrap())
    }

    fn calls(tools: &[Tool], text: &str) -> Vec<Value> {
        let script = Script::parse(&format!("[[step]]\ncalls = [{text}]"), Path::new("")).unwrap();
        let calls = script.steps()[0].calls.iter();
        calls
            .map(|call| {
                let call = call.on_wire(&script, tools).unwrap();
                match call.input {
                    Input::Object(map) => json!([call.name, map]),
                    Input::Text(text) => json!([call.name, text]),
                }
            })
            .collect()
    }

    const FOUR: &str = r#"{ shell = "ls", timeout = "5s" }, { view_image = "a.png" }, { write = "d/b.txt", content = "x\ny\n" }, { tool = "T", arguments = { a = 1 } }"#;

    #[test]
    fn codex() {
        let tools =
            declared(WireFormat::OpenaiResponses, include_str!("../tests/requests/codex-resumed.json"));
        let patch = "*** Begin Patch\n*** Add File: d/b.txt\n+x\n+y\n*** End Patch\n";
        assert_eq!(
            calls(&tools, FOUR),
            [
                json!(["exec_command", {"cmd": "ls", "yield_time_ms": 5000}]),
                json!(["view_image", {"path": "a.png"}]),
                json!(["apply_patch", patch]),
                json!(["T", {"a": 1}]),
            ]
        );
    }

    #[test]
    fn codex_in_code_mode() {
        let tools =
            declared(WireFormat::OpenaiResponses, include_str!("../tests/requests/codex-code-mode.json"));
        let document = "mkdir -p 'd' && cat > 'd/b.txt' <<'END_OF_FILE'\nx\ny\nEND_OF_FILE\n";
        assert_eq!(
            calls(&tools, FOUR)[..3],
            [
                json!(["exec_command", {"cmd": "ls", "yield_time_ms": 5000}]),
                json!(["view_image", {"path": "a.png"}]),
                json!(["exec_command", {"cmd": document, "yield_time_ms": 30000}]),
            ]
        );
        assert_eq!(
            calls(&tools, r#"{ tool = "exec", arguments = { input = "text(1)" } }"#),
            [json!(["exec", "text(1)"])],
            "a tool that takes free text is given its `input`"
        );
    }

    #[test]
    fn claude_code() {
        let tools =
            declared(WireFormat::AnthropicMessages, include_str!("../tests/requests/claude-resumed.json"));
        let description = "A step of the script";
        assert_eq!(
            calls(&tools, FOUR)[..3],
            [
                json!(["Bash", {"command": "ls", "timeout": 5000, "description": description}]),
                json!(["Read", {"file_path": "/work/a.png"}]),
                json!(["Write", {"file_path": "/work/d/b.txt", "content": "x\ny\n"}]),
            ]
        );
    }

    #[test]
    fn tools_of_other_harnesses() {
        let tools = declared(WireFormat::OpenaiChat, include_str!("../tests/requests/chat-picture.json"));
        let document = "mkdir -p 'd' && cat > 'd/b.txt' <<'END_OF_FILE'\nx\ny\nEND_OF_FILE\n";
        assert_eq!(
            calls(&tools, FOUR)[..3],
            [
                json!(["bash", {"command": "ls", "timeout": 5}]),
                json!(["read", {"path": "/work/a.png"}]),
                json!(["bash", {"command": document}]),
            ],
            "a timeout goes out in the unit that the tool declares"
        );
        let old = json!({"tools": [{"type": "function", "name": "shell", "parameters": {"properties": {"command": {"type": "array"}}}}]});
        let tools = Tool::declared(WireFormat::OpenaiResponses, &old);
        assert_eq!(
            calls(&tools, r#"{ shell = "ls" }"#),
            [json!(["shell", {"command": ["bash", "-lc", "ls"]}])]
        );
    }

    #[test]
    fn no_tool_is_an_error_that_names_what_there_is() {
        let tools = [Tool { name: "search".into(), ..Tool::default() }];
        let script = Script::parse("", Path::new("")).unwrap();
        let call = Call::Shell { command: "ls".into(), timeout: None };
        let message = call.on_wire(&script, &tools).unwrap_err().to_string();
        assert!(message.contains("`shell`") && message.contains("search"), "{message}");
    }

    #[test]
    fn here_documents_write_exactly_what_they_are_given() {
        let dir = tempfile::tempdir().unwrap();
        for content in ["", "x", "x\n", "\n", "END_OF_FILE\nEND_OF_FILE_", "$HOME `id` \\n 'q'\r\n\n"] {
            let path = "su'b/fi le.txt";
            let command = here_document(path, content);
            let status =
                std::process::Command::new("bash").args(["-c", &command]).current_dir(dir.path()).status();
            assert!(status.unwrap().success());
            assert_eq!(std::fs::read_to_string(dir.path().join(path)).unwrap(), content, "{command}");
        }
    }
}
