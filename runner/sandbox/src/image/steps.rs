//! Turns what the classic builder prints into events, and the end of it into an error that quotes.

use super::tool::readable;
use super::{BuildEvent, ImageError};

/// How many of a failed step's last lines an error quotes.
const TAIL: usize = 20;

/// Turns the builder's output, which arrives in arbitrary pieces, into events.
#[derive(Default)]
pub(super) struct Steps {
    partial: String,
    current: Option<(u32, u32, String)>,
    tail: Vec<String>,
}

impl Steps {
    pub(super) fn feed(&mut self, text: &str, progress: &mut impl FnMut(BuildEvent)) {
        self.partial.push_str(text);
        while let Some(end) = self.partial.find('\n') {
            let line: String = self.partial.drain(..=end).collect();
            self.line(&line, progress);
        }
        // A tool that never ends its line must not be collected for ever.
        if self.partial.len() > 64 * 1024 {
            self.finish(progress);
        }
    }

    pub(super) fn finish(&mut self, progress: &mut impl FnMut(BuildEvent)) {
        let line = std::mem::take(&mut self.partial);
        self.line(&line, progress);
    }

    fn line(&mut self, raw: &str, progress: &mut impl FnMut(BuildEvent)) {
        let Some(line) = readable(raw) else { return };
        if let Some((index, total, instruction)) = parse_step(&line) {
            self.tail.clear();
            self.current = Some((index, total, instruction.clone()));
            progress(BuildEvent::Step { index, total, instruction, cached: false });
        } else if line.trim() == "---> Using cache" {
            if let Some((index, total, instruction)) = self.current.clone() {
                progress(BuildEvent::Step { index, total, instruction, cached: true });
            }
        } else if !is_bookkeeping(&line) {
            if self.tail.len() == TAIL {
                self.tail.remove(0);
            }
            self.tail.push(line.clone());
            progress(BuildEvent::Output(line));
        }
    }

    pub(super) fn failed(&self, message: String) -> ImageError {
        let step = self.current.as_ref().map_or_else(
            || "the start".to_owned(),
            |(index, total, instruction)| format!("step {index}/{total} ({instruction})"),
        );
        ImageError::Step { step, message, tail: self.tail.join("\n") }
    }
}

/// `Step 5/12 : RUN …` (the classic builder) or `STEP 5/12: RUN …` (Podman).
fn parse_step(line: &str) -> Option<(u32, u32, String)> {
    let rest = line.strip_prefix("Step ").or_else(|| line.strip_prefix("STEP "))?;
    let (count, instruction) = rest.split_once(':')?;
    let (index, total) = count.trim().split_once('/')?;
    let instruction = instruction.split_whitespace().collect::<Vec<_>>().join(" ");
    Some((index.parse().ok()?, total.parse().ok()?, instruction))
}

/// Lines by which the builder speaks of its own containers and layers.
fn is_bookkeeping(line: &str) -> bool {
    let line = line.trim_start();
    ["---> ", "Removing intermediate container", "Successfully ", "debconf: delaying"]
        .iter()
        .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&str]) -> (Steps, Vec<BuildEvent>) {
        let (mut steps, mut events) = (Steps::default(), Vec::new());
        for piece in pieces {
            steps.feed(piece, &mut |event| events.push(event));
        }
        steps.finish(&mut |event| events.push(event));
        (steps, events)
    }

    #[test]
    fn output_in_pieces_becomes_steps() {
        let pieces = [
            "Step 1/2 : FR",
            "OM x\n",
            " ---> Using cache\n",
            " ---> 12ab\nStep 2/2 : RUN  a \\\n",
            "hello\r\n",
            "\u{1b}[91mbad",
        ];
        let (steps, events) = events(&pieces);
        let step = |index, instruction: &str, cached| BuildEvent::Step {
            index,
            total: 2,
            instruction: instruction.to_owned(),
            cached,
        };
        let expected = [
            step(1, "FROM x", false),
            step(1, "FROM x", true),
            step(2, "RUN a \\", false),
            BuildEvent::Output("hello".to_owned()),
            BuildEvent::Output("bad".to_owned()),
        ];
        assert_eq!(events, expected);
        let error = steps.failed("returned a non-zero code: 1".to_owned()).to_string();
        let expected =
            "building the image failed at step 2/2 (RUN a \\): returned a non-zero code: 1\nhello\nbad";
        assert_eq!(error, expected);
    }

    #[test]
    fn what_only_looks_like_a_step_is_output() {
        let (_, events) = events(&["Step by step\n", "Step 1/x : RUN\n", "STEP 3/4: RUN y\n"]);
        let expected = [
            BuildEvent::Output("Step by step".to_owned()),
            BuildEvent::Output("Step 1/x : RUN".to_owned()),
            BuildEvent::Step { index: 3, total: 4, instruction: "RUN y".to_owned(), cached: false },
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn an_endless_line_is_not_collected_for_ever() {
        let piece = "x".repeat(1000);
        let (steps, events) = events(&vec![piece.as_str(); 200]);
        assert!(steps.partial.is_empty() && events.len() > 2);
    }
}
