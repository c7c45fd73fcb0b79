//! The script that is handed to sbatch: kept in the run, to be read and submitted by hand too.

use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;

/// What a trial may need beside its budget, before and after: preparing, collecting, rendering. Slurm sends its warning up
/// to a minute early.
const AROUND_A_TRIAL: Duration = Duration::from_secs(180);

/// The longest warning that Slurm knows, in seconds.
const LONGEST_WARNING: u64 = 65_535;

/// What a job array is to be.
pub(super) struct Script<'a> {
    /// The run, as an absolute path.
    pub(super) run: &'a Path,
    /// The program, as an absolute path.
    pub(super) program: &'a Path,
    /// Array tasks.
    pub(super) tasks: u32,
    /// Trials at a time in each.
    pub(super) per_task_jobs: u16,
    /// The longest budget of the run's methods.
    pub(super) budget: Duration,
    /// `--partition`.
    pub(super) partition: Option<&'a str>,
    /// `--time`.
    pub(super) time: Option<&'a str>,
    /// More options for sbatch.
    pub(super) more: &'a [String],
}

impl Script<'_> {
    /// Its text. Fails for what cannot stand in a line of a script, and for a time limit in which no trial can end.
    pub(super) fn text(&self) -> Result<String, Failure> {
        let warning = (self.budget + AROUND_A_TRIAL).as_secs();
        if let Some(limit) = self.time.and_then(seconds_of).filter(|limit| *limit <= warning) {
            return Err(Failure::input(format!(
                "--time: {limit} s are too short for a trial of {} s",
                self.budget.as_secs()
            ))
            .hint(format!("give more than {warning} s: the budget, and what is done before and after it")));
        }
        let run = text_of(self.run)?;
        let name: String =
            self.run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut options = vec![
            option("job-name", &job_name(&name))?,
            option("array", &array(self.tasks))?,
            option("output", &format!("{}/slurm/%A_%a.log", run.replace('%', "%%")))?,
            "--open-mode=append".to_owned(),
            "--requeue".to_owned(),
            "--ntasks=1".to_owned(),
            format!("--cpus-per-task={}", self.per_task_jobs),
            format!("--signal=B:TERM@{}", warning.min(LONGEST_WARNING)),
        ];
        options.extend(self.partition.map(|it| option("partition", it)).transpose()?);
        options.extend(self.time.map(|it| option("time", it)).transpose()?);
        // Last, so that they win.
        for argument in self.more {
            refuse_ours(argument)?;
            options.push(single_line(argument)?.to_owned());
        }
        let options = options.join("\n#SBATCH ");
        let (program, jobs) = (word(text_of(self.program)?), self.per_task_jobs);
        Ok(format!(
            "#!/bin/bash\n\
             # Each array task joins the run and takes one trial after another, until none is left.\n\
             #SBATCH {options}\n\
             # Some time before the limit a task is told, and begins no new trial; its place is there for the next submission.\n\
             exec {program} run --join {run} -j {jobs}\n",
            run = word(run)
        ))
    }
}

/// The indices of so many array tasks.
pub(super) fn array(tasks: u32) -> String {
    format!("0-{}", tasks.saturating_sub(1))
}

/// Options on which it rests which jobs are a run's, and how many array tasks there are.
fn refuse_ours(argument: &str) -> Result<(), Failure> {
    let is = |long: &str, short: &str| {
        let name = argument.split(['=', ' ']).next().unwrap_or_default();
        // Slurm takes the beginning of a name for the name.
        (name.len() > 3 && long.starts_with(name))
            || (argument.starts_with(short) && !argument.starts_with("--"))
    };
    let refused =
        |hint: &str| Err(Failure::input(format!("--sbatch-arg {argument}: that is ours to set")).hint(hint));
    match () {
        () if is("--array", "-a") => refused("--tasks says how many array tasks there shall be"),
        () if is("--job-name", "-J") => refused("jobs of a run are known by their name"),
        () => Ok(()),
    }
}

/// The name of the jobs of a run.
pub(super) fn job_name(run: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    format!("proctor-{}", run.chars().take(60).map(plain).collect::<String>())
}

/// `--name=value` for a line of `#SBATCH`, whose parser knows double quotes and backslashes.
fn option(name: &str, value: &str) -> Result<String, Failure> {
    let value = single_line(value)?;
    let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "/._-%:,@+=".contains(c));
    Ok(if plain && !value.is_empty() {
        format!("--{name}={value}")
    } else {
        format!("--{name}=\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
    })
}

fn single_line(text: &str) -> Result<&str, Failure> {
    if text.contains(char::is_control) {
        return Err(Failure::input(format!("{text:?} cannot stand in a line of a job's script")));
    }
    Ok(text)
}

fn text_of(path: &Path) -> Result<&str, Failure> {
    let text = path.to_str();
    single_line(text.ok_or_else(|| Failure::input(format!("{}: its path is not text", path.display())))?)
}

/// `text` as one word for a shell.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=@%:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A time limit as sbatch reads it, in seconds: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`. None for what only Slurm
/// can judge, such as `UNLIMITED`.
fn seconds_of(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(days.parse::<u64>().ok()?), rest),
        None => (None, text),
    };
    let parts: Vec<u64> = rest.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let (hours, minutes, seconds) = match (days, parts.as_slice()) {
        (None, [minutes]) => (0, *minutes, 0),
        (None, [minutes, seconds]) => (0, *minutes, *seconds),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        (Some(_), [hours]) => (*hours, 0, 0),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0),
        _ => return None,
    };
    let hours = days.unwrap_or(0).checked_mul(24)?.checked_add(hours)?;
    hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?.checked_add(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script<'a>(run: &'a str, time: Option<&'a str>, more: &'a [String]) -> Script<'a> {
        Script {
            run: Path::new(run),
            program: Path::new("/opt/my tools/proctor"),
            tasks: 3,
            per_task_jobs: 2,
            budget: Duration::from_secs(1800),
            partition: Some("cpu"),
            time,
            more,
        }
    }

    #[test]
    fn a_script_as_it_is_submitted() {
        let more = ["--mem=8G".to_owned()];
        let text = script("/data/runs/first", Some("12:00:00"), &more).text().unwrap();
        assert_eq!(
            text,
            "#!/bin/bash\n\
             # Each array task joins the run and takes one trial after another, until none is left.\n\
             #SBATCH --job-name=proctor-first\n\
             #SBATCH --array=0-2\n\
             #SBATCH --output=/data/runs/first/slurm/%A_%a.log\n\
             #SBATCH --open-mode=append\n\
             #SBATCH --requeue\n\
             #SBATCH --ntasks=1\n\
             #SBATCH --cpus-per-task=2\n\
             #SBATCH --signal=B:TERM@1980\n\
             #SBATCH --partition=cpu\n\
             #SBATCH --time=12:00:00\n\
             #SBATCH --mem=8G\n\
             # Some time before the limit a task is told, and begins no new trial; its place is there for the next submission.\n\
             exec '/opt/my tools/proctor' run --join /data/runs/first -j 2\n"
        );
    }

    #[test]
    fn names_with_everything_in_them_stay_one_word() {
        let text = script("/data/it's 50% \"done\"", None, &[]).text().unwrap();
        assert!(text.contains("#SBATCH --job-name=proctor-it_s_50___done_\n"), "{text}");
        assert!(
            text.contains("#SBATCH --output=\"/data/it's 50%% \\\"done\\\"/slurm/%A_%a.log\"\n"),
            "{text}"
        );
        assert!(text.contains(r#" --join '/data/it'\''s 50% "done"' -j 2"#), "{text}");
        assert!(script("/data/a\nexec evil", None, &[]).text().is_err());
        assert!(script("/data/a", None, &["--mem=1G\n#SBATCH --uid=0".to_owned()]).text().is_err());
        assert!(script("/data/a", Some("1\n2"), &[]).text().is_err());
    }

    #[test]
    fn what_is_ours_to_set_is_refused() {
        for wrong in ["--array=0-9", "--array 1", "-a1", "--job-name=x", "-Jx", "-J x", "--job-n=x"] {
            assert!(script("/r", None, &[wrong.to_owned()]).text().is_err(), "{wrong}");
        }
        for right in ["--account=x", "-Aproject", "--mem=1G", "-n1", "--jobs-not-ours"] {
            assert!(script("/r", None, &[right.to_owned()]).text().is_ok(), "{right}");
        }
    }

    #[test]
    fn a_limit_in_which_no_trial_ends_is_refused() {
        assert!(script("/r", Some("33"), &[]).text().is_err(), "1980 s are the trial and its surroundings");
        assert!(script("/r", Some("34"), &[]).text().is_ok());
        assert!(script("/r", Some("UNLIMITED"), &[]).text().is_ok());
    }

    #[test]
    fn limits_as_slurm_writes_them() {
        for (text, seconds) in [
            ("90", 5400),
            ("1:30", 90),
            ("12:00:00", 43_200),
            ("2-1", 176_400),
            ("1-2:03", 93_780),
            ("1-02:03:04", 93_784),
        ] {
            assert_eq!(seconds_of(text), Some(seconds), "{text}");
        }
        for wrong in ["", "x", "1-", "1:2:3:4", "-1", "99999999999999999999", "18446744073709551615-0"] {
            assert_eq!(seconds_of(wrong), None, "{wrong}");
        }
    }
}
