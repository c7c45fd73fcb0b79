//! The plan that a run keeps is read back without loss, whatever was planned.

#![expect(clippy::unwrap_used, reason = "in a test that is how a failure shows")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_experiment::{
    Bounded, Ceilings, Cpus, Endpoint, Experiment, Judge, Limits, Method, ModelId, Needs, OnMissing,
    OperationName, Price, Retry, Same, Sample, Schedule, Size, Span, Stratum, TaskSelection, Track, Usd,
};
use proctor_store::MethodId;
use proctor_tasks::{Ablation, Category, Difficulty, ImageDelivery, RenderMode, operations};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

fn bounded<const MIN: u64, const MAX: u64>() -> impl Strategy<Value = Bounded<MIN, MAX>> {
    (MIN..=MAX).prop_map(Bounded::clamped)
}

fn span() -> impl Strategy<Value = Span> {
    (1u64..=604_800_000).prop_map(|millis| format!("{millis}ms").parse().unwrap())
}

fn size() -> impl Strategy<Value = Size> {
    (64u64 << 20..1 << 50).prop_map(|bytes| bytes.to_string().parse().unwrap())
}

fn usd() -> impl Strategy<Value = Usd> {
    (0u64..=1_000_000_000_000_000).prop_map(Usd::from_micros)
}

fn cpus() -> impl Strategy<Value = Cpus> {
    (50u32..=512_000).prop_map(|millis| format!("{}", f64::from(millis) / 1000.0).parse().unwrap())
}

fn path() -> impl Strategy<Value = PathBuf> {
    "(/[^/\0]{1,12}){1,3}".prop_map(PathBuf::from)
}

fn method_id() -> impl Strategy<Value = MethodId> {
    "[a-zA-Z0-9_@+=-][a-zA-Z0-9._@+=-]{0,30}".prop_map(|id| MethodId::try_from(id).unwrap())
}

fn model() -> impl Strategy<Value = ModelId> {
    let real = "[^/\\p{C}]{1,10}/[^\\p{C}]{1,20}".prop_map(|text| text.parse().unwrap());
    let real = real.prop_filter("not a recording", |model: &ModelId| model.recording().is_none());
    let recorded = "replay:(/[^/\\p{C}]{1,12}){1,3}(\\?lenient)?".prop_map(|text| text.parse().unwrap());
    prop_oneof![real, recorded, Just("script".parse().unwrap()), Just("script/x".parse().unwrap())]
}

fn tasks() -> impl Strategy<Value = TaskSelection> {
    let names: Vec<OperationName> =
        operations().into_iter().map(|operation| operation.name.parse().unwrap()).collect();
    let strata =
        vec![Stratum::Batch, Stratum::Category, Stratum::Difficulty, Stratum::Mode, Stratum::Operation];
    let sample = (bounded(), any::<u64>(), subsequence(strata, 0..=5));
    let sample = sample.prop_map(|(size, seed, by)| Sample { size, seed, by });
    let filters = (
        subsequence(Category::ALL.to_vec(), 0..=9),
        subsequence(RenderMode::ALL.to_vec(), 0..=5),
        subsequence(Difficulty::ALL.to_vec(), 0..=3),
        subsequence(names, 0..=14),
    );
    let names = || vec(".{0,20}", 0..4);
    (vec(path(), 1..4), names(), names(), names(), filters, option::of(sample), option::of(bounded()))
        .prop_map(|(paths, ids, globs, exclude, (category, mode, difficulty, operation), sample, limit)| {
            TaskSelection { paths, ids, globs, exclude, category, mode, difficulty, operation, sample, limit }
        })
}

fn needs() -> impl Strategy<Value = Needs> {
    let missing = select(vec![OnMissing::Empty, OnMissing::Skip, OnMissing::Fail]);
    (method_id(), option::of(".{1,20}"), option::of(".{1,20}"), missing).prop_map(
        |(method, artifact, rename, on_missing)| Needs {
            method,
            artifact,
            rename,
            same: Same::TaskAndAttempt,
            on_missing,
        },
    )
}

fn method() -> impl Strategy<Value = Method> {
    let harness = select(vec!["codex", "codex@0.150.1", "claude-code@2.1.250", "command", "oracle", "nop"]);
    let answerer = (
        method_id(),
        select(vec![Track::Agent, Track::Native, Track::Direct]),
        option::of(harness.prop_map(|text| text.parse().unwrap())),
        option::of(model()),
        option::of(".{0,40}"),
    );
    let delivery = select(vec![ImageDelivery::Workspace, ImageDelivery::Attach, ImageDelivery::Both]);
    let told = (span(), delivery, any::<bool>(), option::of(path()), option::of(needs()));
    let bounds = (
        option::of(bounded()),
        option::of(bounded()),
        option::of(usd()),
        option::of(bounded()),
        option::of(usd()),
    );
    (answerer, told, bounds).prop_map(|(answerer, told, bounds)| {
        let (id, track, harness, model, command) = answerer;
        let (budget, image_delivery, tell_budget, providers, needs) = told;
        let (jobs, max_trial_tokens, max_trial_cost, max_tokens, max_cost) = bounds;
        Method {
            id,
            track,
            harness,
            model,
            command,
            budget,
            image_delivery,
            tell_budget,
            providers,
            jobs,
            launch_interval: jobs.map(|_| budget),
            ablation: jobs.map(|_| Ablation::A2),
            endpoint: jobs.map(|_| Endpoint::Generations),
            reasoning: jobs.map(|_| "high".to_owned()),
            max_output_tokens: max_trial_tokens,
            request: jobs.iter().map(|_| ("size".to_owned(), "1024x1024".into())).collect(),
            max_trial_tokens,
            max_trial_cost,
            max_tokens,
            max_cost,
            needs,
        }
    })
}

prop_compose! {
    fn limits()(
        memory in size(),
        cpus in option::of(cpus()),
        pids in bounded(),
        disk in size(),
        inodes in bounded(),
    ) -> Limits {
        Limits { memory, cpus, pids, disk, inodes }
    }
}

prop_compose! {
    fn schedule()(
        jobs in bounded(),
        provider_jobs in btree_map(".{1,10}", bounded(), 0..4),
        launch_interval in option::of(span()),
        render_jobs in bounded(),
        overcommit in any::<bool>(),
    ) -> Schedule {
        Schedule { jobs, provider_jobs, launch_interval, render_jobs, overcommit }
    }
}

fn prices() -> impl Strategy<Value = BTreeMap<ModelId, Price>> {
    let price = (usd(), usd(), usd());
    let price = price.prop_map(|(input, cached_input, output)| Price { input, cached_input, output });
    btree_map(model(), price, 0..3)
}

fn experiment() -> impl Strategy<Value = Experiment> {
    let judge = prop_oneof![
        Just(Judge::Pixel),
        model()
            .prop_filter("a judge has a name", |model| !model.is_script() && model.recording().is_none())
            .prop_map(Judge::Model)
    ];
    let about = (option::of(".{0,20}"), bounded(), any::<bool>(), option::of(judge), prices());
    let retry = (bounded(), span()).prop_map(|(retries, backoff)| Retry { retries, backoff });
    let ceilings = (option::of(bounded()), option::of(usd()));
    let ceilings = ceilings.prop_map(|(max_tokens, max_cost)| Ceilings { max_tokens, max_cost });
    (about, tasks(), vec(method(), 1..3), schedule(), retry, limits(), ceilings).prop_map(
        |(about, tasks, methods, schedule, retry, limits, ceilings)| {
            let (name, attempts, render, judge, prices) = about;
            Experiment {
                name,
                attempts,
                render,
                tasks,
                methods,
                schedule,
                retry,
                limits,
                ceilings,
                judge,
                prices,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_plan_is_read_back_as_it_was(plan in experiment(), pick in any::<Index>()) {
        let text = serde_json::to_string_pretty(&plan).unwrap();
        let back: Experiment = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&back, &plan);
        // As `run.json` keeps it: a value whose keys have another order.
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&serde_json::from_value::<Experiment>(value).unwrap(), &plan);
        // Not by leaving out what differs: another attempt is another plan.
        let other = Experiment { attempts: Bounded::clamped(1 + pick.index(1000) as u64), ..plan.clone() };
        prop_assert_eq!(serde_json::to_string(&other).unwrap() == serde_json::to_string(&plan).unwrap(), other == plan);
    }
}
