//! What Slurm's programs print about jobs, as pure functions over their text.
//!
//! The formats are asked for field by field: `--json` has other field names and types in nearly every release of Slurm, the
//! fields of `--format` have stayed the same for fifteen years.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// For `squeue --format`: job, array indices, state, node, reason, name. The name is last, since it may hold anything.
pub(super) const SQUEUE_FORMAT: &str = "%F|%K|%T|%N|%r|%j";
/// For `sacct --format`, with `--parsable2`.
pub(super) const SACCT_FORMAT: &str = "JobID,State,NodeList,JobName";

/// No job array is larger: Slurm's own limit (`MaxArraySize`) is 4,000,001.
const LARGEST_INDEX: u32 = 4_000_000;
/// Indices that one line may stand for, so that a strange line cannot fill the memory.
const MOST_INDICES: usize = 100_000;

/// One task of a job array, written as Slurm does: `1234_5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ArrayTask {
    /// Id of the array's job.
    pub(super) job: u64,
    /// Index in it.
    pub(super) index: u32,
}

impl fmt::Display for ArrayTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.job, self.index)
    }
}

impl FromStr for ArrayTask {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (job, index) = text.split_once('_').ok_or(())?;
        Ok(Self { job: number(job).ok_or(())?, index: number(index).ok_or(())? })
    }
}

impl Serialize for ArrayTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Digits and nothing else; `parse` alone would take a sign.
fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// What Slurm knows of an array task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TaskState {
    /// Slurm's word, such as `RUNNING`.
    pub(super) state: String,
    /// The node, once it has one.
    pub(super) node: Option<String>,
    /// Why it waits, if it does.
    pub(super) reason: Option<String>,
}

impl TaskState {
    /// Whether it will take trials on: it waits to begin, or runs.
    pub(super) fn is_at_work(&self) -> bool {
        let waits = [
            "PENDING",
            "CONFIGURING",
            "REQUEUED",
            "REQUEUE_HOLD",
            "REQUEUE_FED",
            "RESV_DEL_HOLD",
            "SPECIAL_EXIT",
        ];
        let ends = ["COMPLETING", "STAGE_OUT"];
        waits.contains(&self.state.as_str()) || (self.has_process() && !ends.contains(&self.state.as_str()))
    }

    /// Whether its process may be there.
    pub(super) fn has_process(&self) -> bool {
        let words = ["RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"];
        words.contains(&self.state.as_str())
    }
}

/// Array tasks with their states.
pub(super) type Tasks = BTreeMap<ArrayTask, TaskState>;

/// Reads what `squeue --noheader --format` [`SQUEUE_FORMAT`] prints. Only jobs of this name count: a number is given to
/// another job when a cluster is set up again. Lines that are something else are passed over.
pub(super) fn squeue(text: &str, job_name: &str) -> Tasks {
    let mut tasks = Tasks::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.trim().splitn(6, '|').collect();
        let [job, indices, state, node, reason, name] = fields.as_slice() else { continue };
        let Some(job) = number(job).filter(|_| *name == job_name) else { continue };
        for index in expand(indices) {
            let it = TaskState { state: word_of(state), node: present(node), reason: present(reason) };
            tasks.insert(ArrayTask { job, index }, it);
        }
    }
    tasks
}

/// Reads what `sacct --noheader --parsable2 --format` [`SACCT_FORMAT`] prints. Steps of jobs are passed over.
pub(super) fn sacct(text: &str, job_name: &str) -> Tasks {
    let mut tasks = Tasks::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.trim().splitn(4, '|').collect();
        let [id, state, node, name] = fields.as_slice() else { continue };
        let Some((job, indices)) = id.split_once('_').filter(|_| *name == job_name) else { continue };
        let Some(job) = number(job) else { continue };
        for index in expand(indices) {
            let it = TaskState { state: word_of(state), node: present(node), reason: None };
            tasks.insert(ArrayTask { job, index }, it);
        }
    }
    tasks
}

/// What `sbatch --parsable` prints: the job, and its cluster where there are several.
pub(super) fn submitted(text: &str) -> Option<(u64, Option<String>)> {
    // A site's own submission filters may print before it.
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?.trim();
    let (job, cluster) = line.split_once(';').map_or((line, None), |(job, cluster)| (job, present(cluster)));
    Some((number(job)?, cluster))
}

/// `CANCELLED by 1000` is `CANCELLED`; a `+` at the end says that Slurm has cut something.
fn word_of(state: &str) -> String {
    state.split_whitespace().next().unwrap_or_default().trim_end_matches('+').to_owned()
}

/// What Slurm says instead of nothing is nothing.
fn present(text: &str) -> Option<String> {
    let text = text.trim();
    let absent = ["", "(null)", "None", "None assigned", "N/A", "n/a", "Unknown"].contains(&text);
    (!absent).then(|| text.to_owned())
}

/// The indices that `3`, `2-5`, `0-6:2`, `[1,3-5%2]` stand for; `...`, where Slurm has cut its list, stands for none.
fn expand(text: &str) -> Vec<u32> {
    let text = text.trim_start_matches('[').trim_end_matches(']');
    let text = text.split_once('%').map_or(text, |(indices, _)| indices);
    let mut found = Vec::new();
    for part in text.split(',') {
        let (range, step) =
            part.split_once(':').map_or((part, Some(1)), |(range, step)| (range, number(step)));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Some(first), Some(last), Some(step)) = (number::<u32>(first), number::<u32>(last), step)
            && first <= last
            && last <= LARGEST_INDEX
            && step > 0
        {
            let room = MOST_INDICES.saturating_sub(found.len());
            found.extend((first..=last).step_by(step).take(room));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tasks: &Tasks) -> Vec<String> {
        tasks
            .iter()
            .map(|(task, it)| {
                let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
                format!("{task} {} {} {}", it.state, or(&it.node), or(&it.reason))
            })
            .collect()
    }

    #[test]
    fn squeue_as_slurm_22_printed_it() {
        // Captured: `squeue --noheader --array --states=all`, two tasks of four at work.
        let text = "1|2|PENDING||Resources|proctor-x\n1|3|PENDING||Resources|proctor-x\n\
                    1|0|RUNNING|vm|None|proctor-x\n1|1|RUNNING|vm|None|proctor-x\n";
        let expanded =
            ["1_0 RUNNING vm -", "1_1 RUNNING vm -", "1_2 PENDING - Resources", "1_3 PENDING - Resources"];
        assert_eq!(shown(&squeue(text, "proctor-x")), expanded);
        // The same without `--array`.
        let text = "1|2-3|PENDING||Resources|proctor-x\n1|0|RUNNING|vm|None|proctor-x\n1|1|RUNNING|vm|None|proctor-x\n";
        assert_eq!(shown(&squeue(text, "proctor-x")), expanded);
        assert!(squeue(text, "proctor-y").is_empty(), "another job with that number");
    }

    #[test]
    fn sacct_with_steps_ranges_and_remarks() {
        let text = "123_0|COMPLETED|node7|proctor-x\n123_0.batch|COMPLETED|node7|batch\n\
                    123_1|CANCELLED by 1000|node8|proctor-x\n123_[2,4-6%2]|PENDING|None assigned|proctor-x\n\
                    123_7|NODE_FAIL|node[1-2]|proctor-x\n77|COMPLETED|node7|proctor-x\n";
        assert_eq!(
            shown(&sacct(text, "proctor-x")),
            [
                "123_0 COMPLETED node7 -",
                "123_1 CANCELLED node8 -",
                "123_2 PENDING - -",
                "123_4 PENDING - -",
                "123_5 PENDING - -",
                "123_6 PENDING - -",
                "123_7 NODE_FAIL node[1-2] -",
            ]
        );
    }

    #[test]
    fn who_is_at_work_and_who_may_have_a_process() {
        let state = |state: &str| TaskState { state: state.to_owned(), node: None, reason: None };
        for (word, at_work, process) in [
            ("PENDING", true, false),
            ("RUNNING", true, true),
            ("COMPLETING", false, true),
            ("COMPLETED", false, false),
            ("FAILED", false, false),
            ("CANCELLED", false, false),
            ("TIMEOUT", false, false),
            ("NODE_FAIL", false, false),
            ("OUT_OF_MEMORY", false, false),
        ] {
            let it = state(word);
            assert_eq!((it.is_at_work(), it.has_process()), (at_work, process), "{word}");
        }
    }

    #[test]
    fn what_sbatch_answers() {
        assert_eq!(submitted("1234\n"), Some((1234, None)));
        assert_eq!(submitted("1234;alpha\n"), Some((1234, Some("alpha".to_owned()))));
        assert_eq!(submitted("sbatch: your quota is nearly used up\n1234\n\n"), Some((1234, None)));
        for wrong in ["", "\n", "Submitted batch job 7", "-3", "+3", "1x"] {
            assert_eq!(submitted(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn array_tasks_are_written_as_slurm_does() {
        let task: ArrayTask = "1234_5".parse().unwrap();
        assert_eq!((task.job, task.index, task.to_string()), (1234, 5, "1234_5".to_owned()));
        for wrong in ["", "1234", "1234_", "_5", "1234_5_6", "1234_[1-2]", "+1_2", "99999999999999999999_1"] {
            assert!(wrong.parse::<ArrayTask>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn strange_text_is_passed_over_within_bounds() {
        for text in [
            "",
            "|||||",
            "1|2",
            "x|y|z|a|b|n",
            "1|0-4294967295|R|||n",
            "1|5-2|R|||n",
            "1|0-9:0|R|||n",
            "CLUSTER: a",
        ] {
            assert!(squeue(text, "n").is_empty(), "{text}");
            assert!(sacct(text, "n").is_empty(), "{text}");
        }
        let many = "0-3999999,".repeat(50);
        assert_eq!(squeue(&format!("1|{many}|R|||n"), "n").len(), MOST_INDICES);
        assert_eq!(expand("1,3,...").len(), 2);
        assert_eq!(expand("0-6:2"), [0, 2, 4, 6]);
    }
}
