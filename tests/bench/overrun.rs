//! How long after its deadline a room is frozen.

use proctor_traces::Ending;

use crate::figures::{Aim, Report, Row, Samples};
use crate::{Bench, Outcome, say, trials};

const TRIALS: u32 = 24;
const AIM: Aim = Aim::Spread { median: 80.0, p90: 250.0 };

pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> Outcome<()> {
    for at_once in [1, 4] {
        say(&format!("overrun, {at_once} at once"));
        let count = if at_once == 1 { TRIALS / 2 } else { TRIALS };
        let method = ["--harness", "command", "--command", "sleep 60", "--budget", "1s", "--attempts"];
        let mut method: Vec<String> = method.map(str::to_owned).into();
        method.push(count.to_string());
        let ran = trials::run(bench, at_once, &method).await?;
        let mut ours = Samples::default();
        for outcome in &ran.outcomes {
            if outcome.ending != Ending::TimedOut {
                return Err(format!("{}: {:?} instead of a timeout", outcome.trial, outcome.ending).into());
            }
            let overrun = outcome.overrun_ms.ok_or("a timeout without an overrun")?;
            #[expect(clippy::cast_precision_loss, reason = "some milliseconds")]
            ours.push(overrun as f64);
        }
        report.add(Row {
            what: format!("deadline → frozen, {at_once} at once"),
            unit: "ms",
            bare: None,
            aim: Some(AIM),
            remark: format!("largest {:.0}", ours.max()),
            ours,
        });
    }
    Ok(())
}
