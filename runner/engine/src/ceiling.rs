//! What may be used of a model, in tokens or in money.

use proctor_store::Price;
use proctor_traces::{Limit, Usage};

/// The most that a trial, a method or a run may use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ceiling {
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// USD.
    pub cost: Option<f64>,
}

impl Ceiling {
    /// Which of the two `used` is over, the model costing `price`.
    pub(crate) fn exceeded_by(&self, used: Usage, price: Option<Price>) -> Option<Limit> {
        self.reached(Spent::of(used, price), |spent, most| spent > most)
    }

    /// Which of the two is used up.
    pub(crate) fn used_up_by(&self, spent: Spent) -> Option<Limit> {
        self.reached(spent, |spent, most| spent >= most)
    }

    fn reached(&self, spent: Spent, over: impl Fn(f64, f64) -> bool) -> Option<Limit> {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let as_number = |tokens: u64| tokens as f64;
        if self.tokens.is_some_and(|most| over(as_number(spent.tokens), as_number(most))) {
            Some(Limit::Tokens)
        } else if self.cost.is_some_and(|most| over(spent.cost, most)) {
            Some(Limit::Cost)
        } else {
            None
        }
    }

    /// Whether there is none.
    pub(crate) fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    tokens: u64,
    cost: f64,
}

impl Spent {
    /// What `used` came to; without a price it cost nothing that is known.
    pub(crate) fn of(used: Usage, price: Option<Price>) -> Self {
        let tokens = used.input_tokens.saturating_add(used.output_tokens);
        Self { tokens, cost: price.map_or(0.0, |price| price.of(&used)) }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost += other.cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_is_passed_by_more_and_used_up_by_as_much() {
        let price = Price { input: 2.0, cached_input: Some(0.5), output: 10.0 };
        let used = Usage {
            input_tokens: 1_000_000,
            cached_input_tokens: 400_000,
            output_tokens: 100_000,
            ..Usage::default()
        };
        // 0.6 × 2 + 0.4 × 0.5 + 0.1 × 10 = 2.4
        let at = |tokens, cost| Ceiling { tokens, cost };
        assert_eq!(at(Some(1_100_000), Some(2.4001)).exceeded_by(used, Some(price)), None);
        assert_eq!(at(Some(1_099_999), None).exceeded_by(used, Some(price)), Some(Limit::Tokens));
        assert_eq!(at(None, Some(2.3999)).exceeded_by(used, Some(price)), Some(Limit::Cost));
        assert_eq!(at(None, Some(0.1)).exceeded_by(used, None), None);
        assert_eq!(at(Some(1_100_000), None).used_up_by(Spent::of(used, None)), Some(Limit::Tokens));
        let mut twice = Spent::of(used, Some(price));
        twice.add(twice);
        assert_eq!(at(None, Some(4.7999)).used_up_by(twice), Some(Limit::Cost));
        assert_eq!(Ceiling::default().used_up_by(twice), None);
    }
}
