//! Defaults, file, flags: which wins, and where it says it came from.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test that is how a failure shows")]

use std::path::Path;

use pretty_assertions::assert_eq;
use proctor_experiment::{
    AtATime, Experiment, ExperimentError, ExperimentFile, Flags, ModelId, Resolved, Size, Span, Track, join,
    resolve,
};
use proctor_harnesses::HarnessId;

const FILE: &str = r#"name = "main"
attempts = 2
judge = "pixel"

[tasks]
paths = ["packages"]
category = ["dashboard", "flowchart"]
sample = { size = 316, seed = 7 }

[defaults]
budget = "20m"
model = "openai/gpt-5.6-sol"

[[methods]]
id = "codex-gpt"
harness = "codex@0.150.1"
max_trial_cost = 5

[[methods]]
harness = "claude-code"
model = "zai/glm-5.3-flash"
budget = 600

[schedule]
jobs = 10
provider_jobs = { openai = 10, zai = 4 }
launch_interval = "250ms"

[prices."openai/gpt-5.6-sol"]
input = 1.25
output = 10
"#;

fn resolved(text: &str, flags: &Flags) -> Result<Resolved, ExperimentError> {
    resolve(
        Some(&ExperimentFile::parse(Path::new("/lab/exp/experiment.toml"), text)?),
        flags,
        Path::new("/home/x"),
    )
}

/// The origin of a setting, as it is shown.
fn origin(resolved: &Resolved, path: &str) -> String {
    let settings = resolved.settings();
    let setting = settings.iter().find(|it| it.path == path).unwrap_or_else(|| panic!("no setting {path}"));
    format!("{} from {}", setting.text(), setting.origin)
}

fn refusal(text: &str, flags: &Flags) -> String {
    let error = resolved(text, flags).unwrap_err();
    let place = match &error {
        ExperimentError::InFile { span: Some(span), text: source, .. } => {
            let text: &str = source.inner();
            format!(" at `{}`", &text[span.offset()..span.offset() + span.len()])
        }
        _ => String::new(),
    };
    format!("{error}{place}; {}", error.hint().unwrap_or("no hint"))
}

fn harness(text: &str) -> HarnessId {
    text.parse().unwrap()
}

#[test]
fn a_file_alone_is_laid_over_what_proctor_has() {
    let it = resolved(FILE, &Flags::default()).unwrap();
    let experiment = &it.experiment;
    assert_eq!(experiment.name.as_deref(), Some("main"));
    assert_eq!(experiment.tasks.paths, [Path::new("/lab/exp/packages")]);
    let ids: Vec<&str> = experiment.methods.iter().map(|method| method.id.as_str()).collect();
    assert_eq!(ids, ["codex-gpt", "claude-code-zai-glm-5.3-flash"]);
    assert_eq!(experiment.methods[0].track, Track::Agent);
    assert_eq!(origin(&it, "methods.codex-gpt.budget"), "1200s from /lab/exp/experiment.toml:11");
    assert_eq!(
        origin(&it, "methods.claude-code-zai-glm-5.3-flash.budget"),
        "600s from /lab/exp/experiment.toml:22"
    );
    assert_eq!(origin(&it, "methods.codex-gpt.model"), "openai/gpt-5.6-sol from /lab/exp/experiment.toml:12");
    assert_eq!(origin(&it, "methods.codex-gpt.image_delivery"), "workspace from default");
    assert_eq!(origin(&it, "limits.cpus"), "– from default");
    assert_eq!(origin(&it, "attempts"), "2 from /lab/exp/experiment.toml:2");
    assert_eq!(origin(&it, "schedule.provider_jobs"), "openai 10, zai 4 from /lab/exp/experiment.toml:26");
    assert_eq!(
        origin(&it, "tasks.sample"),
        "by batch, category, difficulty, seed 7, size 316 from /lab/exp/experiment.toml:8"
    );
    assert_eq!(
        origin(&it, "prices.openai/gpt-5.6-sol"),
        "cached_input 1.25, input 1.25, output 10.0 from /lab/exp/experiment.toml:29"
    );
}

#[test]
fn flags_win_setting_by_setting() {
    let flags = Flags {
        jobs: Some(AtATime::clamped(3)),
        provider_jobs: [("zai".to_owned(), AtATime::clamped(1))].into(),
        budget: Some(Span::from_secs(60)),
        seed: Some(8),
        tell_budget: true,
        memory: Some(Size::from_mib(512)),
        ..Flags::default()
    };
    let it = resolved(FILE, &flags).unwrap();
    assert_eq!(origin(&it, "methods.codex-gpt.budget"), "60s from --budget");
    assert_eq!(origin(&it, "methods.claude-code-zai-glm-5.3-flash.budget"), "60s from --budget");
    assert_eq!(origin(&it, "methods.codex-gpt.tell_budget"), "yes from --tell-budget");
    assert_eq!(origin(&it, "schedule.jobs"), "3 from --jobs");
    assert_eq!(origin(&it, "schedule.provider_jobs"), "openai 10, zai 1 from --provider-jobs");
    assert_eq!(origin(&it, "limits.memory"), "512m from --memory");
    let sample = it.experiment.tasks.sample.as_ref().unwrap();
    assert_eq!((sample.size.get(), sample.seed), (316, 8));
    assert_eq!(it.experiment.methods.len(), 2);
}

#[test]
fn typed_methods_replace_those_of_the_file_and_keep_its_defaults() {
    let flags = Flags {
        harnesses: vec![harness("codex"), harness("oracle")],
        model: Some("script".parse().unwrap()),
        ..Flags::default()
    };
    let it = resolved(FILE, &flags).unwrap();
    let ids: Vec<&str> = it.experiment.methods.iter().map(|method| method.id.as_str()).collect();
    assert_eq!(ids, ["codex-script-gpt-5.5", "oracle"]);
    assert_eq!(it.experiment.methods[1].model, None);
    assert_eq!(origin(&it, "methods.codex-script-gpt-5.5.model"), "script from --model");
    assert_eq!(origin(&it, "methods.oracle.budget"), "1200s from /lab/exp/experiment.toml:11");
}

#[test]
fn flags_alone_are_an_experiment() {
    let flags = Flags {
        paths: vec!["t".into()],
        harnesses: vec![harness("command")],
        command: Some("true".to_owned()),
        ..Flags::default()
    };
    let it = resolve(None, &flags, Path::new("/home/x")).unwrap();
    assert_eq!(it.experiment.tasks.paths, [Path::new("/home/x/t")]);
    assert_eq!(it.experiment.methods[0].budget, Span::from_secs(1800));
    assert_eq!(it.experiment.schedule.render_jobs.get(), 2);
    assert_eq!(origin(&it, "methods.command.command"), "true from --command");
}

#[test]
fn who_names_tasks_means_these_tasks() {
    let flags = Flags { ids: vec!["flow-a".to_owned()], ..Flags::default() };
    let tasks = resolved(FILE, &flags).unwrap().experiment.tasks;
    assert_eq!((tasks.ids, tasks.sample, tasks.category), (vec!["flow-a".to_owned()], None, Vec::new()));
    assert_eq!(tasks.paths, [Path::new("/lab/exp/packages")]);
}

#[test]
fn lists_of_tasks_become_part_of_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("subset.txt"), "b # second\na\n").unwrap();
    let text = "[tasks]\npaths = [\".\"]\nids = [\"c\", \"a\"]\nids_file = \"subset.txt\"\n[[methods]]\nharness = \"nop\"";
    let file = ExperimentFile::parse(&folder.path().join("e.toml"), text).unwrap();
    let it = resolve(Some(&file), &Flags::default(), Path::new("/")).unwrap();
    assert_eq!(it.experiment.tasks.ids, ["c", "a", "b"]);
    assert_eq!(it.experiment.tasks.paths, [folder.path()]);

    let flags = Flags { ids_file: Some("none.txt".into()), ..Flags::default() };
    let error = resolve(Some(&file), &flags, folder.path()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: cannot be read", folder.path().join("none.txt").display()));
}

#[test]
fn slips_in_a_file_are_shown_where_they_stand() {
    let none = Flags::default();
    let with = |text: &str| format!("[tasks]\npaths = [\"t\"]\n[[methods]]\nharness = \"nop\"\n{text}");
    assert_eq!(
        refusal(&with("[schedul]\njobs = 1"), &none),
        "/lab/exp/experiment.toml: unknown field `schedul`, expected one of `name`, `attempts`, `render`, `tasks`, `defaults`, `methods`, `schedule`, `retry`, `limits`, `ceilings`, `judge`, `prices` at `schedul`; did you mean `schedule`?"
    );
    assert_eq!(
        refusal(&with("budget = \"3 days\""), &none),
        "/lab/exp/experiment.toml: `3 days`: a time is a number with ms, s, m or h at `\"3 days\"`; no hint"
    );
    assert_eq!(
        refusal(&with("[schedule]\njobs = 0"), &none),
        "/lab/exp/experiment.toml: `0`: it must be a whole number from 1 to 512 at `0`; no hint"
    );
    assert_eq!(
        refusal("[tasks]\npaths = [\"t\"]\ncategory = [\"dashbord\"]", &none),
        "/lab/exp/experiment.toml: unknown variant `dashbord`, expected one of `business_webpage`, `scientific_document`, `dashboard`, `flowchart`, `architecture`, `circuit`, `statistical_chart`, `mathematical_figure`, `chemical_diagram` at `\"dashbord\"`; did you mean `dashboard`?"
    );
    let message = refusal("[tasks]\npaths = [\"t\"]\noperation = [\"text_edi\"]", &none);
    assert!(
        message.contains("`text_edi`: it is no operation. did you mean `text_edit`? There is: "),
        "{message}"
    );
    let message = refusal(&with("harness2 = 1"), &none);
    assert!(message.ends_with("did you mean `harness`?"), "{message}");
    let message = refusal("[[methods]]\nharness = \"codec\"\n[tasks]\npaths = [\"t\"]", &none);
    assert!(message.contains("codec") && message.contains("at `\"codec\"`"), "{message}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let none = Flags::default();
    let with = |methods: &str| format!("tasks.paths = [\"t\"]\n{methods}");
    let check = |methods: &str, expected: &str| {
        let message = refusal(&with(methods), &none);
        let message = message.strip_prefix("/lab/exp/experiment.toml: ").unwrap_or(&message).to_owned();
        assert_eq!(message, expected);
    };
    check(
        "",
        "no method is named; name an agent with --harness, or an experiment file with [[methods]]: proctor run FILE.toml",
    );
    check(
        "[[methods]]\nharness = \"codex\"",
        "method `codex`: codex needs a model at `\"codex\"`; `--model script` plays the tasks' own scripts; a real one is PROVIDER/NAME",
    );
    check(
        "[[methods]]\nid = \"x\"\nharness = \"nop\"\n[[methods]]\nid = \"x\"\nharness = \"oracle\"",
        "two methods are named `x` at `\"x\"`; give one of them an `id` of its own",
    );
    check(
        "[[methods]]\ntrack = \"native\"\nharness = \"nop\"",
        "method `native-nop`: on the track `native` no agent answers at `\"nop\"`; leave out `harness`, or name track = \"agent\"",
    );
    check(
        "[[methods]]\nharness = \"command\"",
        "method `command`: `command` and harness = \"command\" go together at `\"command\"`; harness = \"command\" with command = \"bash /work/agent.sh\"",
    );
    check(
        "[[methods]]\nharness = \"command\"\ncommand = \"'\"",
        "command: the quote ' at character 1 is never closed at `\"'\"`; no hint",
    );
    check(
        "[[methods]]\nid = \"a\"\nharness = \"codex\"\nmodel = \"zai/glm\"\nmax_cost = 3",
        "max_cost cannot be held: method `a` has a model without a price at `3`; [prices.\"zai/glm\"] with `input` and `output` in US dollars per million tokens",
    );
    check(
        "ceilings.max_cost = 100\n[[methods]]\nid = \"a\"\nharness = \"codex\"\nmodel = \"zai/glm\"",
        "max_cost of the run cannot be held: method `a` has a model without a price at `100`; [prices.\"zai/glm\"] with `input` and `output` in US dollars per million tokens",
    );
    let asks = "[[methods]]\nharness = \"codex\"\nmodel = \"openai/gpt\"\n";
    check(
        &format!("schedule.provider_jobs = {{ opnai = 3 }}\n{asks}"),
        "provider_jobs: no method asks a provider `opnai` at `3`; did you mean `openai`?",
    );
    check(
        &format!("{asks}[prices.\"openai/gtp\"]\ninput = 1\noutput = 2"),
        "prices: no method uses a model `openai/gtp` at `[prices.\"openai/gtp\"]`; did you mean `openai/gpt`?",
    );
    check(
        &format!("{asks}[prices.\"zai/glm-5.3-flash\"]\ninput = 1\noutput = 2"),
        "prices: no method uses a model `zai/glm-5.3-flash` at `[prices.\"zai/glm-5.3-flash\"]`; there is: openai/gpt",
    );
    check(
        "[[methods]]\nharness = \"nop\"\nneeds = { method = \"b\" }",
        "method `nop` needs `b`, which is no method at `{ method = \"b\" }`; there is: nop",
    );
    check(
        "[[methods]]\nharness = \"nop\"\nneeds = { method = \"oracle\" }\n[[methods]]\nharness = \"oracle\"\nneeds = { method = \"nop\" }",
        "method `nop` needs itself, in the end at `{ method = \"oracle\" }`; no hint",
    );
    check(
        "[[methods]]\nharness = \"nop\"\nneeds = { method = \"oracle\", as = \"../x\" }\n[[methods]]\nharness = \"oracle\"",
        "method `nop` needs `../x`, which is no path in a workspace at `{ method = \"oracle\", as = \"../x\" }`; name a file without `..` and without a slash before it",
    );
}

#[test]
fn typed_methods_are_checked_as_such() {
    let typed = |change: fn(&mut Flags)| {
        let mut flags = Flags { paths: vec!["t".into()], ..Flags::default() };
        change(&mut flags);
        let error = resolve(None, &flags, Path::new("/")).unwrap_err();
        error.to_string()
    };
    assert_eq!(typed(|_| ()), "no method is named");
    assert_eq!(typed(|it| it.paths.clear()), "no tasks are named");
    assert_eq!(typed(|it| it.harnesses = vec![harness("codex")]), "--harness codex needs a --model");
    assert_eq!(
        typed(|it| it.harnesses = vec![harness("nop"), harness("nop")]),
        "--harness nop is given twice"
    );
    assert_eq!(
        typed(|it| it.harnesses = vec![harness("command")]),
        "--command and --harness command go together"
    );
    assert_eq!(typed(|it| it.model = Some("a/b".parse::<ModelId>().unwrap())), "--model goes with --harness");
    assert_eq!(
        typed(|it| {
            it.harnesses = vec![harness("nop")];
            it.seed = Some(1);
        }),
        "--seed is of a sample"
    );
}

#[test]
fn what_a_file_says_of_other_models_holds_nobody_up_who_types_one() {
    // The file's prices and bounds are of its own methods.
    let flags = Flags {
        harnesses: vec![harness("codex")],
        model: Some("lab/x".parse::<ModelId>().unwrap()),
        ..Flags::default()
    };
    assert_eq!(resolved(FILE, &flags).unwrap().experiment.prices.len(), 1);
    let slip =
        Flags { provider_jobs: [("opena".to_owned(), AtATime::clamped(1))].into(), ..Flags::default() };
    let error = resolved(FILE, &slip).unwrap_err().to_string();
    assert_eq!(error, "provider_jobs: no method asks a provider `opena`");
    let joined = join(resolved(FILE, &Flags::default()).unwrap().experiment, &slip).unwrap_err().to_string();
    assert_eq!(joined, error);
}

#[test]
fn who_joins_a_run_sets_only_the_pace() {
    let plan = resolved(FILE, &Flags::default()).unwrap().experiment;
    let flags = Flags {
        jobs: Some(AtATime::clamped(64)),
        provider_jobs: [("zai".to_owned(), AtATime::clamped(1))].into(),
        ..Flags::default()
    };
    let it = join(plan.clone(), &flags).unwrap();
    assert_eq!(origin(&it, "schedule.jobs"), "64 from --jobs");
    assert_eq!(origin(&it, "schedule.provider_jobs"), "openai 10, zai 1 from --provider-jobs");
    assert_eq!(origin(&it, "schedule.launch_interval"), "250ms from the run");
    assert_eq!(origin(&it, "methods.codex-gpt.budget"), "1200s from the run");
    let same = Experiment { schedule: plan.schedule.clone(), ..it.experiment };
    assert_eq!(same, plan);

    let error = join(plan, &Flags { budget: Some(Span::from_secs(1)), ..Flags::default() }).unwrap_err();
    assert_eq!(error.to_string(), "--join takes everything from the run, --budget too");
}

#[test]
fn a_plan_of_a_later_proctor_is_not_half_understood() {
    let plan = resolved(FILE, &Flags::default()).unwrap().experiment;
    let mut value = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<Experiment>(value.clone()).unwrap(), plan);
    value["schedule"]["moon_phase"] = "full".into();
    assert!(serde_json::from_value::<Experiment>(value).is_err());
}
