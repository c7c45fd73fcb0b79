//! The trials of a plan, shown as they go, with rendering behind them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use proctor_engine::{EngineEvent, Host, Plan, RunEnd, Site, Stop, run as dispatch};
use proctor_render::RenderStatus;
use proctor_store::{MethodId, RunDir, TrialId};
use proctor_tasks::Task;
use proctor_traces::Ending;
use tokio::sync::mpsc;

use super::interrupts::Interrupts;
use crate::commands::print_json;
use crate::console::{self, Console, LeftOut};
use crate::failure::Failure;
use crate::rendering::{Rendering, by_id};

/// What is shown of a run.
pub(super) struct Show {
    /// Outcomes as JSON.
    pub(super) json: bool,
    /// How many trials there are, by method.
    pub(super) planned: Vec<(MethodId, usize)>,
}

/// Runs the plan, shows it, and renders behind it. Returns how it ended.
pub(super) async fn carry_out(
    plan: Plan,
    site: Site,
    host: Host,
    tasks: &[Arc<Task>],
    rendering: Option<Rendering>,
    show: Show,
) -> Result<(RunEnd, LeftOut), Failure> {
    let stop = Stop::default();
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut console = Console::new(&show.planned, plan.schedule.jobs, show.json);
    let run = host.run.clone();
    let running = tokio::spawn(dispatch(plan, Arc::new(site), Arc::new(host), stop.clone(), sender));

    // Rendering goes on behind the trials, in a task of its own with a queue before it.
    let (queue, waiting) = mpsc::unbounded_channel::<TrialId>();
    let (pictures, mut seen) = mpsc::unbounded_channel();
    let rendered = tokio::spawn(render_queue(rendering, waiting, run, by_id(tasks), pictures));
    let mut interrupts = Interrupts::listen()?;
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            event = events.recv() => {
                let Some(event) = event else { break };
                console.show(&event);
                match &event {
                    EngineEvent::Finished(outcome) => {
                        if show.json {
                            print_json(outcome)?;
                        }
                        // The renderer lives as long as the queue.
                        let _ = queue.send(outcome.trial.clone());
                    }
                    EngineEvent::Skipped { trial } => drop(queue.send(trial.clone())),
                    _ => {}
                }
            }
            Some(trial) = seen.recv() => console.recovered(&trial),
            () = interrupts.next() => console.say(interrupts.act(&stop)),
            _ = tick.tick() => console.tick(),
        }
    }
    drop(queue);
    console.finish();
    let end = running.await.map_err(|error| Failure::internal(format!("the dispatcher: {error}")))??;
    if let Some(text) = console::why(&end) {
        console.say(&text);
    }
    for problem in rendered.await.map_err(|error| Failure::internal(format!("the renderer: {error}")))? {
        console.say(&problem);
    }
    Ok((end, console.left_out))
}

/// Renders trials as they come, some at a time, and names those that are recovered by it; returns what went wrong on our
/// side.
async fn render_queue(
    rendering: Option<Rendering>,
    waiting: mpsc::UnboundedReceiver<TrialId>,
    run: RunDir,
    tasks: HashMap<String, Arc<Task>>,
    recovered: mpsc::UnboundedSender<TrialId>,
) -> Vec<String> {
    let Some(rendering) = rendering else { return Vec::new() };
    let ids = stream::unfold(waiting, async |mut waiting| waiting.recv().await.map(|id| (id, waiting)));
    let results = ids
        .map(|id| render_one(id, &rendering, &run, &tasks, &recovered))
        .buffer_unordered(rendering.at_a_time);
    let mut problems: Vec<String> = results.filter_map(|problem| async { problem }).collect().await;
    if let Err(failure) = rendering.close().await {
        problems.push(format!("closing the renderer: {failure}"));
    }
    problems
}

async fn render_one(
    id: TrialId,
    rendering: &Rendering,
    run: &RunDir,
    tasks: &HashMap<String, Arc<Task>>,
    recovered: &mpsc::UnboundedSender<TrialId>,
) -> Option<String> {
    let task = tasks.get(id.task())?;
    let folder = run.trial(&id);
    let result = match folder.outcome() {
        Ok(Some(outcome)) => rendering.trial(&folder, &outcome, task, false).await.map(|it| {
            let status = it.status();
            if outcome.ending == Ending::TimedOut && status == Some(RenderStatus::Rendered) {
                // Whoever shows it may be gone.
                let _ = recovered.send(id.clone());
            }
        }),
        Ok(None) => Ok(()),
        Err(error) => Err(error.into()),
    };
    result.err().map(|failure| format!("{id}: rendering failed: {failure}"))
}
