//! Judging by a vision model, as far as that can be had here: the model is scripted, the way to it and all that is written
//! down are real.

use std::fs;
use std::path::Path;

use proctor_judge::vision::{Unscored, Verdict};
use proctor_store::{RunDir, Score, TrialDir};

use crate::support::{Run, proctor};

const POINTS: [&str; 10] = ["d1", "d2", "d3", "v1", "v2", "v3", "v4", "i1", "i2", "i3"];

/// A reply in which all points but these hold.
fn reply(failing: &[&str]) -> String {
    let points: Vec<_> = POINTS
        .iter()
        .map(|id| {
            serde_json::json!({"id": id, "evidence": "seen", "rationale": "so", "verifiable": true,
                "satisfied": i32::from(!failing.contains(id)), "confidence": 0.9})
        })
        .collect();
    let rating = serde_json::json!({"rationale": "fine", "rating": 4});
    serde_json::json!({"points": points, "visual_quality": rating, "domain_quality": rating}).to_string()
}

struct Judging<'a> {
    run: &'a Run,
    folder: tempfile::TempDir,
}

impl Judging<'_> {
    /// Judges with a scripted model whose answers these are, and returns the status and what was printed.
    fn with(&self, script: &str, more: &[&str]) -> (Option<i32>, String) {
        let file = self.folder.path().join("judge.toml");
        fs::write(&file, script).unwrap();
        let judge = format!("script:{}", file.display());
        self.by(&judge, more)
    }

    fn by(&self, judge: &str, more: &[&str]) -> (Option<i32>, String) {
        let mut command = proctor();
        command.arg("judge").arg(self.run.out()).args(["--judge", judge]).args(more);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    fn trial(&self, method: &str) -> TrialDir {
        let id = format!("vao/flow-approval/{method}/1");
        RunDir::open(&self.run.out()).unwrap().trial(&id.parse().unwrap())
    }
}

fn verdict(trial: &TrialDir, score: &Score) -> Verdict {
    let place = trial.marks_of(&score.judge).unwrap();
    serde_json::from_slice(&fs::read(place.verdict()).unwrap()).unwrap()
}

fn answer(contains: &str, times: &str, text: &str) -> String {
    format!("[[answer]]\ncontains = [{contains}]\n{times}\ntext = '''{text}'''\n")
}

#[test]
fn a_vision_model_marks_what_it_sees_once_and_other_judges_stand_beside_it() {
    let run = Run::over_one().args(["--harness", "oracle", "--harness", "nop"]);
    run.go().with_code(0);
    let judging = Judging { run: &run, folder: tempfile::tempdir().unwrap() };

    // The first reply cannot be read; the second is that of a judge who sees a fault; the third, with the pictures in the
    // other order, sees two.
    let rubric = "\"SCORING POINTS\", \"logic of a flowchart\"";
    let script = [
        answer(rubric, "times = 1", "A fine picture, I should say."),
        answer(rubric, "times = 1", &reply(&["v2"])),
        answer(rubric, "", &reply(&["v2", "i1"])),
    ]
    .concat();
    let (code, said) = judging.with(&script, &["--order-swap"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("9 of 10 points, visual 4, domain 4; 1 marks differ in 1 more answers"), "{said}");
    let (oracle, nop) = (judging.trial("oracle"), judging.trial("nop"));
    let score = oracle.score().unwrap().unwrap();
    assert!(score.is_complete() && score.judge.starts_with("script@xhigh#"), "{}", score.judge);
    let failing: Vec<&str> =
        score.points.iter().filter(|it| it.satisfied == Some(false)).map(|it| it.id.as_str()).collect();
    assert_eq!(failing, ["v2"]);
    let found = verdict(&oracle, &score);
    assert_eq!(found.answers.iter().map(|it| it.swapped).collect::<Vec<_>>(), [false, true]);
    assert_eq!(found.answers[0].failures, [Unscored::NoBlock.to_string()]);
    assert_eq!(found.pictures.len(), 3);
    // Without a picture nothing was asked, and nothing holds.
    let none = nop.score().unwrap().unwrap();
    assert!(none.points.iter().all(|it| it.satisfied == Some(false)) && none.visual_quality.is_none());
    assert!(verdict(&nop, &none).answers.is_empty());

    // The same again asks nobody.
    let broken = "[[answer]]\ntext = \"x\"\nfault = { kind = \"status\", status = 400 }";
    let (code, said) = judging.with(broken, &["--order-swap"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("2 judged before"), "{said}");

    // Another judge has a place of its own.
    let (code, said) = judging.by("pixel", &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(oracle.score().unwrap(), Some(score));
    let (code, said) = judging.by("pixel", &["--agreement"]);
    assert!(said.contains("This is the pixel judge"), "{said}");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.starts_with("pixel/1 and script@xhigh#") && said.contains("over 1 trial that both"),
        "{said}"
    );
    assert!(said.contains("(1 without a picture left out)"), "{said}");
    // One of ten marks was another with the pictures in the other order.
    assert!(said.contains("swapped   same mark 0.900 (n = 10), points that hold -0.100"), "{said}");
    assert!(
        oracle
            .score_by("pixel/1")
            .unwrap()
            .is_some_and(|it| it.points.iter().all(|p| p.satisfied != Some(false)))
    );
}

#[test]
fn what_a_judge_does_not_say_is_unscored_and_kept() {
    let run = Run::over_one().args(["--harness", "oracle"]);
    run.go().with_code(0);
    let judging = Judging { run: &run, folder: tempfile::tempdir().unwrap() };
    let refusal = "I cannot evaluate this image.";
    let (code, said) = judging.with(&answer("", "", refusal), &[]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("unscored: there is no structured block in the reply"), "{said}");
    let trial = judging.trial("oracle");
    let score = trial.score().unwrap().unwrap();
    assert!(!score.is_complete() && score.points.iter().all(|it| it.satisfied.is_none()));
    let found = verdict(&trial, &score);
    assert_eq!((found.answers[0].reply.as_str(), found.answers[0].failures.len()), (refusal, 3));
    // It is asked again the next time, and a point left out is no better than no reply.
    let half = reply(&[]).replace("\"i3\"", "\"i4\"");
    let (code, said) = judging.with(&answer("", "", &half), &[]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("`i4` is no point of this task"), "{said}");
    let (code, said) = judging.with(&answer("", "", &reply(&[])), &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(trial.score().unwrap().unwrap().is_complete());
    assert!(!Path::new(&trial.path().join("judges")).exists(), "it is one judge");
}
