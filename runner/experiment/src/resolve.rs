//! Three layers: what proctor has, what the file says, what was typed. The later wins, setting by setting.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proctor_tasks::toml_text::Step;
use proctor_tasks::toml_text::Step::Key;

use crate::check::{check, names_of_providers};
use crate::experiment::{Ceilings, Limits, Price, Retry, Sample, Schedule, Stratum, TaskSelection};
use crate::file::Place;
use crate::method::methods;
use crate::select::read_ids;
use crate::value::{AtATime, Attempts, Inodes, Pids, Retries, Size, Span};
use crate::{Experiment, ExperimentError, ExperimentFile, Flags, Origin, Resolved};

/// What one flag said.
pub(crate) type Flag<T> = (&'static str, Option<T>);

/// The layers, and what is known of the origin of settings.
pub(crate) struct Layers<'a> {
    pub(crate) place: Option<&'a Place>,
    /// Where flags were typed, absolute.
    pub(crate) here: &'a Path,
    pub(crate) origins: BTreeMap<String, Origin>,
}

/// Resolves what is in `file` and was typed in the folder `here`, which is absolute. Reads the lists of tasks that they
/// name, and nothing else.
pub fn resolve(
    file: Option<&ExperimentFile>,
    flags: &Flags,
    here: &Path,
) -> Result<Resolved, ExperimentError> {
    let empty = ExperimentFile::default();
    let place = file.map(|file| &file.place);
    let file = file.unwrap_or(&empty);
    let mut layers = Layers { place, here, origins: BTreeMap::new() };

    let rendered = ("--no-render", flags.no_render.then_some(false));
    let experiment = Experiment {
        name: layers.pick(&[Key("name")], ("", None), file.name.as_ref()),
        attempts: layers
            .pick(&[Key("attempts")], ("--attempts", flags.attempts), file.attempts.as_ref())
            .unwrap_or(Attempts::clamped(1)),
        render: layers.pick(&[Key("render")], rendered, file.render.as_ref()).unwrap_or(true),
        tasks: tasks(&mut layers, file, flags)?,
        methods: methods(&mut layers, file, flags)?,
        schedule: schedule(&mut layers, file, flags),
        retry: retry(&mut layers, file, flags),
        limits: limits(&mut layers, file, flags),
        ceilings: ceilings(&mut layers, file, flags),
        judge: layers.pick(&[Key("judge")], ("", None), file.judge.as_ref()),
        prices: prices(&mut layers, file),
    };
    check(&experiment, &layers)?;
    Ok(Resolved { experiment, origins: layers.origins })
}

/// The experiment of a run that a process joins: its plan, at the pace of what was typed. Every other flag is refused.
pub fn join(plan: Experiment, flags: &Flags) -> Result<Resolved, ExperimentError> {
    let refused = flags.of_the_plan();
    if let Some(first) = refused.first() {
        return Err(ExperimentError::input(format!("--join takes everything from the run, {first} too"))
            .with_hint(
                "leave out all flags but -j, --provider-jobs, --launch-interval, --render-jobs and --overcommit",
            ));
    }
    let mut resolved = Resolved { experiment: plan, origins: BTreeMap::new() };
    let paths: Vec<String> = resolved.settings().into_iter().map(|setting| setting.path).collect();
    let mut layers = Layers {
        place: None,
        here: Path::new("/"),
        origins: paths.into_iter().map(|path| (path, Origin::Run)).collect(),
    };
    let old = &resolved.experiment.schedule;
    let typed = schedule(&mut layers, &ExperimentFile::default(), flags);
    // What was typed must be right; what the run has is as it is.
    names_of_providers(&typed, &resolved.experiment, &layers)?;
    resolved.experiment.schedule = Schedule {
        jobs: if flags.jobs.is_some() { typed.jobs } else { old.jobs },
        provider_jobs: old.provider_jobs.clone().into_iter().chain(typed.provider_jobs).collect(),
        launch_interval: typed.launch_interval.or(old.launch_interval),
        render_jobs: if flags.render_jobs.is_some() { typed.render_jobs } else { old.render_jobs },
        overcommit: typed.overcommit || old.overcommit,
    };
    resolved.origins = layers.origins;
    Ok(resolved)
}

impl Layers<'_> {
    /// The value of the setting at `path`, none if nobody said one. Remembers who did.
    pub(crate) fn pick<T: Clone>(&mut self, path: &[Step<'_>], flag: Flag<T>, file: Option<&T>) -> Option<T> {
        let (value, origin) = self.choose(path, flag, file)?;
        let keys = path.iter().map(|step| match step {
            Key(key) => (*key).to_owned(),
            Step::Index(index) => index.to_string(),
        });
        self.origins.insert(keys.collect::<Vec<_>>().join("."), origin);
        Some(value)
    }

    /// The value and its origin.
    pub(crate) fn choose<T: Clone>(
        &self,
        path: &[Step<'_>],
        (name, typed): Flag<T>,
        file: Option<&T>,
    ) -> Option<(T, Origin)> {
        match (typed, file) {
            (Some(value), _) => Some((value, Origin::Flag(name))),
            (None, Some(value)) => Some((value.clone(), self.in_file(path))),
            (None, None) => None,
        }
    }

    fn in_file(&self, path: &[Step<'_>]) -> Origin {
        self.place.map_or(Origin::Default, |place| Origin::File {
            path: place.file.clone(),
            line: place.line(path),
        })
    }

    /// `path`, absolute: from where the origin is.
    pub(crate) fn absolute(&self, path: &Path, origin: &Origin) -> Result<PathBuf, ExperimentError> {
        let base = match origin {
            Origin::File { path, .. } => self.here.join(path.parent().unwrap_or(Path::new(""))),
            _ => self.here.to_owned(),
        };
        // Of an absolute path it only takes out what says nothing.
        let absolute =
            std::path::absolute(base.join(path)).map_err(|error| ExperimentError::read(path, error))?;
        match absolute.to_str() {
            Some(_) => Ok(absolute),
            None => Err(ExperimentError::input(format!("{}: the path is not UTF-8", path.display()))
                .with_hint("it would be lost in the plan of the run; rename the folder")),
        }
    }
}

/// A flag that was typed if its list is not empty.
fn listed<T: Clone>(name: &'static str, list: &[T]) -> Flag<Vec<T>> {
    (name, (!list.is_empty()).then(|| list.to_vec()))
}

fn tasks(
    layers: &mut Layers<'_>,
    file: &ExperimentFile,
    flags: &Flags,
) -> Result<TaskSelection, ExperimentError> {
    let paths = layers.pick(
        &[Key("tasks"), Key("paths")],
        listed("--tasks", &flags.paths),
        file.tasks.paths.as_ref(),
    );
    let paths = paths.filter(|paths| !paths.is_empty()).ok_or_else(|| {
        ExperimentError::input("no tasks are named").with_hint(
            "name packages, or folders of them, with --tasks or as `paths` under [tasks] of the experiment",
        )
    })?;
    let origin = layers.origins.get("tasks.paths").cloned().unwrap_or(Origin::Default);
    let paths = paths.iter().map(|path| layers.absolute(path, &origin)).collect::<Result<_, _>>()?;

    // Who names tasks means these tasks: of the file only the paths hold then.
    let nothing = crate::file::TasksTable::default();
    let table = if flags.names_tasks() { &nothing } else { &file.tasks };
    let mut list =
        |key, flag, inside| layers.pick(&[Key("tasks"), Key(key)], flag, inside).unwrap_or_default();
    let globs = list("globs", listed("--glob", &flags.globs), table.globs.as_ref());
    let exclude = list("exclude", listed("--exclude", &flags.exclude), table.exclude.as_ref());
    let mut selection =
        TaskSelection { paths, ids: ids(layers, table, flags)?, globs, exclude, ..TaskSelection::default() };
    macro_rules! filter {
        ($($field:ident $key:literal $flag:literal),*) => {$(
            let typed = listed($flag, &flags.$field);
            let picked = layers.pick(&[Key("tasks"), Key($key)], typed, table.$field.as_ref());
            selection.$field = picked.unwrap_or_default();
        )*};
    }
    filter!(
        category "category" "--category",
        mode "mode" "--mode",
        difficulty "difficulty" "--difficulty",
        operation "operation" "--operation"
    );
    selection.sample = sample(layers, table.sample.as_ref(), flags)?;
    selection.limit =
        layers.pick(&[Key("tasks"), Key("limit")], ("--limit", flags.limit), table.limit.as_ref());
    Ok(selection)
}

/// Tasks that are named one by one, and those that a file names.
fn ids(
    layers: &mut Layers<'_>,
    table: &crate::file::TasksTable,
    flags: &Flags,
) -> Result<Vec<String>, ExperimentError> {
    let listed = layers.pick(&[Key("tasks"), Key("ids")], listed("--task", &flags.ids), table.ids.as_ref());
    let path = [Key("tasks"), Key("ids_file")];
    let file = layers.choose(&path, ("--ids", flags.ids_file.clone()), table.ids_file.as_ref());
    let mut ids = listed.unwrap_or_default();
    if let Some((file, origin)) = file {
        ids.extend(read_ids(&layers.absolute(&file, &origin)?)?);
        layers.origins.entry("tasks.ids".to_owned()).or_insert(origin);
    }
    let mut seen = std::collections::BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    Ok(ids)
}

/// `--sample` and `--seed` replace the parts of the file's sample.
fn sample(
    layers: &mut Layers<'_>,
    file: Option<&Sample>,
    flags: &Flags,
) -> Result<Option<Sample>, ExperimentError> {
    let typed = match (flags.sample, flags.seed, file) {
        (None, None, _) => None,
        (None, Some(_), None) => {
            return Err(ExperimentError::input("--seed is of a sample").with_hint("--sample N draws N tasks"));
        }
        (Some(size), seed, None) => {
            Some(Sample { size, seed: seed.unwrap_or_default(), by: Stratum::of_the_paper() })
        }
        (size, seed, Some(file)) => Some(Sample {
            size: size.unwrap_or(file.size),
            seed: seed.unwrap_or(file.seed),
            by: file.by.clone(),
        }),
    };
    let name = if flags.sample.is_some() { "--sample" } else { "--seed" };
    Ok(layers.pick(&[Key("tasks"), Key("sample")], (name, typed), file))
}

fn schedule(layers: &mut Layers<'_>, file: &ExperimentFile, flags: &Flags) -> Schedule {
    let table = &file.schedule;
    let key = |key| [Key("schedule"), Key(key)];
    let provider_jobs = (!flags.provider_jobs.is_empty()).then(|| {
        // The file's other providers keep their bounds.
        let inside = table.provider_jobs.iter().flatten().map(|(name, jobs)| (name.clone(), *jobs));
        inside.chain(flags.provider_jobs.clone()).collect()
    });
    Schedule {
        jobs: layers
            .pick(&key("jobs"), ("--jobs", flags.jobs), table.jobs.as_ref())
            .unwrap_or(AtATime::clamped(1)),
        provider_jobs: layers
            .pick(&key("provider_jobs"), ("--provider-jobs", provider_jobs), table.provider_jobs.as_ref())
            .unwrap_or_default(),
        launch_interval: layers.pick(
            &key("launch_interval"),
            ("--launch-interval", flags.launch_interval),
            table.launch_interval.as_ref(),
        ),
        render_jobs: layers
            .pick(&key("render_jobs"), ("--render-jobs", flags.render_jobs), table.render_jobs.as_ref())
            .unwrap_or(AtATime::clamped(2)),
        overcommit: layers
            .pick(
                &key("overcommit"),
                ("--overcommit", flags.overcommit.then_some(true)),
                table.overcommit.as_ref(),
            )
            .unwrap_or_default(),
    }
}

fn retry(layers: &mut Layers<'_>, file: &ExperimentFile, flags: &Flags) -> Retry {
    let table = &file.retry;
    Retry {
        retries: layers
            .pick(&[Key("retry"), Key("retries")], ("--retries", flags.retries), table.retries.as_ref())
            .unwrap_or(Retries::clamped(3)),
        backoff: layers
            .pick(&[Key("retry"), Key("backoff")], ("--backoff", flags.backoff), table.backoff.as_ref())
            .unwrap_or(Span::from_secs(5)),
    }
}

fn limits(layers: &mut Layers<'_>, file: &ExperimentFile, flags: &Flags) -> Limits {
    let table = &file.limits;
    let key = |key| [Key("limits"), Key(key)];
    Limits {
        memory: layers
            .pick(&key("memory"), ("--memory", flags.memory), table.memory.as_ref())
            .unwrap_or(Size::from_mib(4096)),
        cpus: layers.pick(&key("cpus"), ("--cpus", flags.cpus), table.cpus.as_ref()),
        pids: layers
            .pick(&key("pids"), ("--pids", flags.pids), table.pids.as_ref())
            .unwrap_or(Pids::clamped(512)),
        disk: layers
            .pick(&key("disk"), ("--disk", flags.disk), table.disk.as_ref())
            .unwrap_or(Size::from_mib(4096)),
        inodes: layers
            .pick(&key("inodes"), ("--inodes", flags.inodes), table.inodes.as_ref())
            .unwrap_or(Inodes::clamped(200_000)),
    }
}

fn ceilings(layers: &mut Layers<'_>, file: &ExperimentFile, flags: &Flags) -> Ceilings {
    let table = &file.ceilings;
    let key = |key| [Key("ceilings"), Key(key)];
    Ceilings {
        max_tokens: layers.pick(
            &key("max_tokens"),
            ("--max-tokens", flags.max_tokens),
            table.max_tokens.as_ref(),
        ),
        max_cost: layers.pick(&key("max_cost"), ("--max-cost", flags.max_cost), table.max_cost.as_ref()),
    }
}

fn prices(layers: &mut Layers<'_>, file: &ExperimentFile) -> BTreeMap<crate::ModelId, Price> {
    let mut prices = BTreeMap::new();
    for (model, table) in &file.prices {
        let price = Price {
            input: table.input,
            cached_input: table.cached_input.unwrap_or(table.input),
            output: table.output,
        };
        let name = model.to_string();
        layers.pick(&[Key("prices"), Key(&name)], ("", None), Some(table));
        prices.insert(model.clone(), price);
    }
    prices
}
