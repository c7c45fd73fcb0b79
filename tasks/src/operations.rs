//! The operations that instructions ask for.

use serde::{Deserialize, Serialize};

use crate::package::Difficulty;

const TEXT: &str = include_str!("../operations.toml");

/// One of the 14 operations (VAO-Bench, table 6, whose names are lost: these are ours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Its name in task files.
    pub name: String,
    /// Its name in tables.
    pub title: String,
    /// What is done.
    pub description: String,
    /// The difficulties at which it usually occurs.
    pub usual: Vec<Difficulty>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationsFile {
    operation: Vec<Operation>,
}

/// All operations, in the order of `operations.toml`.
pub fn operations() -> Vec<Operation> {
    // The file is part of the program: a test reads it, so the fallback is never taken.
    toml::from_str::<OperationsFile>(TEXT).unwrap_or_default().operation
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_fourteen_with_names_of_their_own() {
        toml::from_str::<OperationsFile>(TEXT).unwrap();
        let operations = operations();
        assert_eq!(operations.len(), 14);
        assert_eq!(operations.iter().map(|operation| &operation.name).collect::<BTreeSet<_>>().len(), 14);
        assert!(operations.iter().all(|operation| !operation.usual.is_empty()));
    }
}
