//! What the trials of a run have used, against what they may.

use std::collections::{BTreeMap, BTreeSet};

use proctor_store::{MethodId, current};
use proctor_traces::Usage;

use super::{Reached, Site};
use crate::ceiling::Spent;
use crate::{Ceiling, EngineError, Method, Plan};

/// Counts up, and says each ceiling once when it is reached.
pub(super) struct Spending {
    run: (Ceiling, Spent),
    methods: BTreeMap<MethodId, Spent>,
    ceilings: BTreeMap<MethodId, Ceiling>,
    told: BTreeSet<Option<MethodId>>,
}

impl Spending {
    /// What the trials that are done have used. Only read where something depends on it: it costs a look at each.
    pub(super) fn new(plan: &Plan, site: &Site) -> Result<Self, EngineError> {
        let ceilings = plan.trials.iter().map(|spec| (spec.method.id.clone(), spec.method.ceiling_total));
        let mut spending = Self {
            run: (plan.schedule.ceiling, Spent::default()),
            methods: BTreeMap::new(),
            ceilings: ceilings.filter(|(_, ceiling)| !ceiling.is_open()).collect(),
            told: BTreeSet::new(),
        };
        if !plan.schedule.ceiling.is_open() || !spending.ceilings.is_empty() {
            let survey = site.run.survey()?;
            for spec in &plan.trials {
                if let Some(outcome) = site.run.trial(&current(&spec.id, &survey)).outcome()? {
                    spending.count(&spec.method, outcome.tokens);
                }
            }
        }
        Ok(spending)
    }

    /// The ceilings that are reached now and were not before.
    pub(super) fn reached(&mut self) -> Vec<Reached> {
        let spent = |method: &MethodId| self.methods.get(method).copied().unwrap_or_default();
        let methods = self
            .ceilings
            .iter()
            .map(|(method, ceiling)| (Some(method.clone()), ceiling.used_up_by(spent(method))));
        let all = methods.chain([(None, self.run.0.used_up_by(self.run.1))]);
        let reached: Vec<Reached> = all.filter_map(|(who, limit)| Some((who, limit?))).collect();
        reached.into_iter().filter(|(who, _)| self.told.insert(who.clone())).collect()
    }

    /// A trial of `method` has used this.
    pub(super) fn count(&mut self, method: &Method, used: Usage) {
        let spent = Spent::of(used, method.price);
        self.run.1.add(spent);
        self.methods.entry(method.id.clone()).or_default().add(spent);
    }
}
