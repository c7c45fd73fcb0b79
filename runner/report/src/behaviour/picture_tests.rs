use proctor_traces::actions::Action;

use super::super::strategies::{Mark, ShownTask};
use super::*;

fn mark(start_ms: u64, end_ms: u64, actions: &[Action]) -> Mark {
    Mark { call: "c".into(), start_ms, end_ms, actions: actions.to_vec() }
}

fn row(end: End, agent_ms: u64, marks: Vec<Mark>) -> Shown {
    Shown { trial: "vao/t/m/1".into(), end, agent_ms, marks }
}

fn task(task: &str, category: &str) -> ShownTask {
    ShownTask {
        suite: "vao".into(),
        task: task.into(),
        category: category.into(),
        difficulty: "easy".into(),
        source: String::new(),
    }
}

/// Two tasks by one method with a budget of 1000 seconds: one completed after half of it, one was cut off.
fn figure() -> Strategies {
    let rows = vec![
        row(
            End::Completed,
            500_000,
            vec![
                mark(0, 100_000, &[Action::ViewOriginalImage]),
                mark(250_000, 250_001, &[Action::EditAnswer]),
            ],
        ),
        row(
            End::TimedOut,
            1_000_000,
            vec![
                mark(500_000, 600_000, &[Action::RenderPreview, Action::VisualComparison]),
                mark(700_000, 710_000, &[]),
                mark(999_999, 1_000_000, &[Action::FindFonts]),
            ],
        ),
    ];
    Strategies {
        run: "r".into(),
        seed: 3,
        candidates: 2,
        left_out: vec!["vao/three".into()],
        not_final: None,
        tasks: vec![task("one", "chart"), task("two", "circuit")],
        panels: vec![Panel { method: "m".into(), budget_ms: 1_000_000, rows }],
        problems: Vec::new(),
    }
}

/// What is drawn in a colour.
fn paths<'a>(svg: &'a str, colour: &str) -> Vec<&'a str> {
    let begin = format!("<path fill=\"{colour}\" d=\"");
    svg.match_indices(&begin)
        .map(|(at, _)| svg[at + begin.len()..].split('"').next().unwrap_or_default())
        .collect()
}

#[test]
fn a_mark_is_where_its_time_is_and_two_pixels_wide_at_least() {
    let svg = figure().svg();
    // One panel of 640 pixels from x = 178, rows of 18 from y = 132, bars of 16.
    assert_eq!(paths(&svg, COLOURS[Action::ViewOriginalImage as usize].0), ["M178.0 133.0h64.0v16.0h-64.0z"]);
    assert_eq!(paths(&svg, COLOURS[Action::EditAnswer as usize].0), ["M338.0 133.0h2.0v16.0h-2.0z"]);
    // Two actions of one call lie one over the other.
    assert_eq!(paths(&svg, COLOURS[Action::RenderPreview as usize].0), ["M498.0 151.0h64.0v8.0h-64.0z"]);
    assert_eq!(paths(&svg, COLOURS[Action::VisualComparison as usize].0), ["M498.0 159.0h64.0v8.0h-64.0z"]);
    // No action: half as high. At the very end: not beyond the deadline.
    assert_eq!(paths(&svg, OTHER.0), ["M626.0 155.0h6.4v8.0h-6.4z"]);
    assert_eq!(paths(&svg, COLOURS[Action::FindFonts as usize].0), ["M816.0 151.0h2.0v16.0h-2.0z"]);
    assert!(svg.contains("1 of 2 completed, 1 timed out") && svg.contains("stroke-dasharray"));
    assert!(svg.contains("<title>two: easy, timed out, 16.7 min, 3 calls</title>"), "{svg}");
}

#[test]
fn the_same_data_give_the_same_bytes_and_all_colours_turn_over_in_the_dark() {
    let svg = figure().svg();
    assert_eq!(svg, figure().svg());
    let mut light: Vec<&str> = COLOURS.iter().map(|it| it.0).collect();
    light.sort_unstable();
    light.dedup();
    assert_eq!(light.len(), 15, "no two actions have one colour");
    let style = svg.split("</style>").next().unwrap_or_default();
    let used = svg.match_indices("=\"#").map(|(at, _)| &svg[at + 2..at + 9]);
    for colour in used {
        assert!(style.contains(&format!("[fill=\"{colour}\"]")), "{colour} is the same in the dark");
    }
}

#[test]
fn names_are_text_and_nothing_else() {
    let evil = "\"><script>alert(1)</script>&\u{1b}";
    let mut figure = figure();
    figure.run = evil.into();
    figure.panels[0].method = evil.into();
    figure.tasks = vec![
        ShownTask { difficulty: evil.into(), ..task(evil, evil) },
        ShownTask { difficulty: evil.into(), ..task(evil, evil) },
    ];
    let svg = figure.svg();
    assert!(!svg.contains("<script") && !svg.contains('\u{1b}') && !svg.contains("&\u{1b}"), "{svg}");
    assert!(svg.contains("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;"));
    let mut csv = Vec::new();
    figure.panels[0].rows[0].marks[0].call = "a,\"b\"\nc".into();
    figure.write_csv(&mut csv).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_slice());
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    // Five calls, one of which has two actions.
    assert_eq!(lines.len(), 6);
    assert_eq!((&lines[0][10], &lines[0][6], &lines[4][11], &lines[4][12]), ("a,\"b\"\nc", evil, "", ""));
    assert_eq!((&lines[2][11], &lines[2][12], &lines[2][13]), ("render_preview", "comparison", "500.0"));
}

#[test]
fn many_tasks_and_methods_fit() {
    let mut figure = figure();
    let (tasks, rows) = (figure.tasks[0].clone(), figure.panels[0].rows[1].clone());
    figure.tasks = vec![tasks; 108];
    let panel = Panel {
        method: "a-very-long-name-of-a-method".repeat(3),
        budget_ms: 1_800_000,
        rows: vec![rows; 108],
    };
    figure.panels = vec![panel; 7];
    let layout = Layout::of(&figure);
    assert_eq!(layout.beside, 5);
    let (width, height) = layout.size(7);
    for at in 0..7 {
        let (x, y) = layout.origin(at);
        assert!(x + layout.width + 12.0 <= width && y + layout.height + FOOT <= height, "{at}");
    }
    assert!(layout.pitch >= 6.0);
    let empty = Strategies { tasks: Vec::new(), panels: Vec::new(), ..figure };
    assert!(empty.svg().ends_with("</svg>\n"));
}
